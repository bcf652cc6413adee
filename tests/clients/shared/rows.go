package main

import (
	"database/sql"
	"fmt"
)

// collect returns the rows of a driver of database/sql; bytes of columns that are no bytes are text.
func collect(rows *sql.Rows, isBytes func(kind string) bool) (any, error) {
	defer rows.Close()
	found := Answer{Columns: [][2]string{}, Rows: [][]any{}}
	kinds, err := rows.ColumnTypes()
	if err != nil {
		return nil, err
	}
	for _, kind := range kinds {
		found.Columns = append(found.Columns, [2]string{kind.Name(), kind.DatabaseTypeName()})
	}
	for rows.Next() {
		values := make([]any, len(kinds))
		places := make([]any, len(kinds))
		for at := range values {
			places[at] = &values[at]
		}
		if err = rows.Scan(places...); err != nil {
			return nil, err
		}
		for at, value := range values {
			bytes, is := value.([]byte)
			if is && !isBytes(kinds[at].DatabaseTypeName()) {
				value = string(bytes)
			}
			values[at] = shown(value)
		}
		found.Rows = append(found.Rows, values)
	}
	return found, rows.Err()
}

// count reads rows as they come, and adds up the numbers in their first column.
func count(database *sql.DB, text string) (any, error) {
	rows, err := database.Query(text)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var number, rowsRead, sum int64
	for rows.Next() {
		if err = rows.Scan(&number); err != nil {
			return nil, fmt.Errorf("row %d: %w", rowsRead, err)
		}
		rowsRead++
		sum += number
	}
	return []int64{rowsRead, sum}, rows.Err()
}
