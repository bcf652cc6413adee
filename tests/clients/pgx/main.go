// pgx, Go's driver of PostgreSQL.
package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strconv"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
)

var (
	always     = context.Background()
	connection *pgx.Conn
)

func main() {
	serve(connect, map[string]command{
		"query":       query,
		"many":        many,
		"at_once":     atOnce,
		"transaction": transaction,
	}, codeOf)
}

func connect([]string) (any, error) {
	told := told()
	zone := told.Zone
	if zone == "" {
		zone = "UTC"
	}
	address := fmt.Sprintf(
		"postgres://%s:%s@%s:%d/%s?timezone=%s",
		url.QueryEscape(told.User), url.QueryEscape(told.Password), told.Host, told.Postgres,
		told.Database, url.QueryEscape(zone),
	)
	made, err := pgx.Connect(always, address)
	if err != nil {
		return nil, err
	}
	connection = made
	return made.PgConn().ParameterStatus("server_version"), nil
}

func query(words []string) (any, error) {
	rows, err := connection.Query(always, words[0], valuesOf(words[1:])...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	found := Answer{Columns: [][2]string{}, Rows: [][]any{}}
	for _, field := range rows.FieldDescriptions() {
		name := strconv.Itoa(int(field.DataTypeOID))
		if kind, known := connection.TypeMap().TypeForOID(field.DataTypeOID); known {
			name = kind.Name
		}
		found.Columns = append(found.Columns, [2]string{field.Name, name})
	}
	found.Rows, err = readRows(rows)
	return found, err
}

func readRows(rows pgx.Rows) ([][]any, error) {
	found := [][]any{}
	for rows.Next() {
		values, err := rows.Values()
		if err != nil {
			return nil, err
		}
		for at, value := range values {
			if number, is := value.(pgtype.Numeric); is {
				text, err := number.Value()
				if err != nil {
					return nil, err
				}
				value = text
			}
			values[at] = shown(value)
		}
		found = append(found, values)
	}
	return found, rows.Err()
}

// many reads rows as they come.
func many(words []string) (any, error) {
	rows, err := connection.Query(always, words[0])
	if err != nil {
		return nil, err
	}
	numbers, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	var sum int64
	for _, number := range numbers {
		sum += number
	}
	return []int64{int64(len(numbers)), sum}, err
}

// atOnce sends all before the first answer is read.
func atOnce(words []string) (any, error) {
	batch := &pgx.Batch{}
	for _, sql := range words {
		batch.Queue(sql)
	}
	sent := connection.SendBatch(always, batch)
	defer sent.Close()
	found := [][][]any{}
	for range words {
		rows, err := sent.Query()
		if err != nil {
			return nil, err
		}
		some, err := readRows(rows)
		if err != nil {
			return nil, err
		}
		found = append(found, some)
	}
	return found, nil
}

// transaction runs statements as one that is rolled back; how each ended.
func transaction(words []string) (any, error) {
	begun, err := connection.BeginTx(always, pgx.TxOptions{AccessMode: pgx.ReadOnly})
	if err != nil {
		return nil, err
	}
	ended := []string{}
	for _, sql := range words {
		if _, err = begun.Exec(always, sql); err != nil {
			ended = append(ended, codeOf(err))
		} else {
			ended = append(ended, "ok")
		}
	}
	return ended, begun.Rollback(always)
}

func codeOf(err error) string {
	var told *pgconn.PgError
	if errors.As(err, &told) {
		return told.Code
	}
	fmt.Fprintf(os.Stderr, "%T\n", err)
	return "client"
}
