// pq, Go's older driver of PostgreSQL.
package main

import (
	"database/sql"
	"errors"
	"fmt"

	"github.com/lib/pq"
)

var database *sql.DB

func main() {
	serve(connect, map[string]command{
		"query":       query,
		"many":        func(words []string) (any, error) { return count(database, words[0]) },
		"transaction": transaction,
	}, codeOf)
}

func connect([]string) (any, error) {
	told := told()
	zone := told.Zone
	if zone == "" {
		zone = "UTC"
	}
	made, err := sql.Open("postgres", fmt.Sprintf(
		"host=%s port=%d user=%s password='%s' dbname=%s sslmode=disable timezone=%s",
		told.Host, told.Postgres, told.User, told.Password, told.Database, zone,
	))
	if err != nil {
		return nil, err
	}
	made.SetMaxOpenConns(1)
	database = made
	var version string
	return version, made.QueryRow("SHOW server_version").Scan(&version)
}

func query(words []string) (any, error) {
	if len(words) == 1 {
		rows, err := database.Query(words[0])
		if err != nil {
			return nil, err
		}
		return collect(rows, isBytes)
	}
	prepared, err := database.Prepare(words[0])
	if err != nil {
		return nil, err
	}
	defer prepared.Close()
	rows, err := prepared.Query(valuesOf(words[1:])...)
	if err != nil {
		return nil, err
	}
	return collect(rows, isBytes)
}

// transaction runs statements as one that is rolled back; how each ended.
func transaction(words []string) (any, error) {
	begun, err := database.Begin()
	if err != nil {
		return nil, err
	}
	ended := []string{}
	for _, sql := range words {
		if _, err = begun.Exec(sql); err != nil {
			ended = append(ended, codeOf(err))
		} else {
			ended = append(ended, "ok")
		}
	}
	return ended, begun.Rollback()
}

func isBytes(kind string) bool { return kind == "BYTEA" }

func codeOf(err error) string {
	var told *pq.Error
	if errors.As(err, &told) {
		return string(told.Code)
	}
	return "client"
}
