package main

import (
	"bufio"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"time"
)

// What every Go program here does: answer commands of its standard input as JSON.

// Options are what the program was told of the mesh.
type Options struct {
	Host, User, Password, Database, Kafka, Zone, Group string
	HTTP, Postgres, Flight                             int
}

// Answer holds rows as the client gave them, and the columns with the types that it names.
type Answer struct {
	Columns [][2]string `json:"columns"`
	Rows    [][]any     `json:"rows"`
}

type command func(words []string) (any, error)

func told() Options {
	var found Options
	if err := json.Unmarshal([]byte(os.Args[1]), &found); err != nil {
		panic(err)
	}
	return found
}

// valueOf returns the value that `kind:text` is.
func valueOf(word string) any {
	kind, text, _ := strings.Cut(word, ":")
	var found any
	var err error
	switch kind {
	case "null":
		return nil
	case "int":
		found, err = strconv.ParseInt(text, 10, 64)
	case "double":
		found, err = strconv.ParseFloat(text, 64)
	case "bool":
		found = text == "true"
	case "time":
		found, err = time.Parse(time.RFC3339Nano, text)
	default:
		found = text
	}
	if err != nil {
		panic(err)
	}
	return found
}

// bytesOf returns the bytes that hexadecimal digits are.
func bytesOf(text string) ([]byte, error) { return hex.DecodeString(text) }

func valuesOf(words []string) []any {
	found := make([]any, len(words))
	for at, word := range words {
		found[at] = valueOf(word)
	}
	return found
}

// shown returns what stands in JSON for a value.
func shown(found any) any {
	switch value := found.(type) {
	case time.Time:
		return value.UTC().Format("2006-01-02T15:04:05.000000000Z07:00")
	case []byte:
		return hex.EncodeToString(value)
	case float64:
		if math.IsNaN(value) || math.IsInf(value, 0) {
			return fmt.Sprint(value)
		}
	}
	return found
}

// serve connects, tells the server's version, and does what standard input says until it ends.
func serve(connect command, commands map[string]command, codeOf func(error) string) {
	out := json.NewEncoder(os.Stdout)
	answer := func(work command, words []string) bool {
		found, err := work(words)
		if err != nil {
			out.Encode(map[string]any{"error": codeOf(err), "message": err.Error()})
			return false
		}
		if err = out.Encode(map[string]any{"answer": found}); err != nil {
			out.Encode(map[string]any{"error": "JSON", "message": err.Error()})
		}
		return true
	}
	if !answer(connect, nil) {
		return
	}
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		words := strings.Split(in.Text(), "\t")
		work, known := commands[words[0]]
		if !known {
			panic("no command " + words[0])
		}
		answer(work, words[1:])
	}
}
