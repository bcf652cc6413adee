// driver-go, TDengine's driver for Go, over its WebSocket.
package main

import (
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	taos "github.com/taosdata/driver-go/v3/errors"
	_ "github.com/taosdata/driver-go/v3/taosWS"
	"github.com/taosdata/driver-go/v3/ws/schemaless"
)

var database *sql.DB

func main() {
	serve(connect, map[string]command{
		"query":  query,
		"update": update,
		"many":   func(words []string) (any, error) { return count(database, words[0]) },
		"bind":   bind,
		"lines":  lines,
	}, codeOf)
}

func connect([]string) (any, error) {
	told := told()
	zone := ""
	if told.Zone != "" {
		zone = "?timezone=" + url.QueryEscape(told.Zone)
	}
	made, err := sql.Open("taosWS", fmt.Sprintf(
		"%s:%s@ws(%s:%d)/%s%s",
		url.QueryEscape(told.User), url.QueryEscape(told.Password), told.Host, told.HTTP,
		told.Database, zone,
	))
	if err != nil {
		return nil, err
	}
	made.SetMaxOpenConns(1)
	database = made
	var version string
	return version, made.QueryRow("SELECT server_version()").Scan(&version)
}

// query writes parameters into the text, as the driver does.
func query(words []string) (any, error) {
	rows, err := database.Query(words[0], valuesOf(words[1:])...)
	if err != nil {
		return nil, err
	}
	return collect(rows, func(kind string) bool { return kind == "VARBINARY" })
}

func update(words []string) (any, error) {
	done, err := database.Exec(words[0])
	if err != nil {
		return nil, err
	}
	return done.RowsAffected()
}

// bind writes rows by a prepared statement; a row is values with bars between them.
func bind(words []string) (any, error) {
	prepared, err := database.Prepare(words[0])
	if err != nil {
		return nil, err
	}
	defer prepared.Close()
	var written int64
	for _, row := range words[1:] {
		done, err := prepared.Exec(valuesOf(strings.Split(row, "|"))...)
		if err != nil {
			return nil, err
		}
		some, err := done.RowsAffected()
		if err != nil {
			return nil, err
		}
		written += some
	}
	return written, nil
}

// lines writes line protocol.
func lines(words []string) (any, error) {
	told := told()
	writer, err := schemaless.NewSchemaless(schemaless.NewConfig(
		fmt.Sprintf("ws://%s:%d", told.Host, told.HTTP), 1,
		schemaless.SetUser(told.User), schemaless.SetPassword(told.Password),
		schemaless.SetDb(told.Database),
		schemaless.SetReadTimeout(time.Minute), schemaless.SetWriteTimeout(time.Minute),
	))
	if err != nil {
		return nil, err
	}
	defer writer.Close()
	return nil, writer.Insert(
		strings.Join(words, "\n"), schemaless.InfluxDBLineProtocol, "ns", 0, 7,
	)
}

func codeOf(err error) string {
	var told *taos.TaosError
	if errors.As(err, &told) {
		return strconv.FormatInt(int64(told.Code), 16)
	}
	return "client"
}
