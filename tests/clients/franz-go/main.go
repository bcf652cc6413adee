// franz-go, with its client of schema registries.
package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl/scram"
	"github.com/twmb/franz-go/pkg/sr"
)

var (
	client   *kgo.Client
	registry *sr.Client
)

func main() {
	serve(connect, map[string]command{
		"topics":  topics,
		"publish": publish,
		"read":    read,
		"group":   group,
		"schema":  schema,
	}, codeOf)
}

func options() []kgo.Opt {
	told := told()
	login := scram.Auth{User: told.User, Pass: told.Password}
	return []kgo.Opt{
		kgo.SeedBrokers(told.Kafka),
		kgo.SASL(login.AsSha256Mechanism()),
		kgo.RecordRetries(3),
	}
}

func soon() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), time.Minute)
}

func connect([]string) (any, error) {
	told := told()
	made, err := kgo.NewClient(options()...)
	if err != nil {
		return nil, err
	}
	client = made
	registry, err = sr.NewClient(
		sr.URLs(fmt.Sprintf("http://%s:%d", told.Host, told.HTTP)),
		sr.BasicAuth(told.User, told.Password),
	)
	if err != nil {
		return nil, err
	}
	ctx, cancel := soon()
	defer cancel()
	return "connected", client.Ping(ctx)
}

// topics lists their names.
func topics([]string) (any, error) {
	ctx, cancel := soon()
	defer cancel()
	found, err := kmsg.NewPtrMetadataRequest().RequestWith(ctx, client)
	if err != nil {
		return nil, err
	}
	names := []string{}
	for _, topic := range found.Topics {
		names = append(names, *topic.Topic)
	}
	return names, nil
}

// publish sends values to a topic: topic, key, value, value, …
func publish(words []string) (any, error) {
	ctx, cancel := soon()
	defer cancel()
	records := []*kgo.Record{}
	for _, text := range words[2:] {
		value, err := bytesOf(text)
		if err != nil {
			return nil, err
		}
		records = append(records, &kgo.Record{Topic: words[0], Key: []byte(words[1]), Value: value})
	}
	sent := client.ProduceSync(ctx, records...)
	return len(sent), sent.FirstErr()
}

// read returns so many values of a topic from its beginning, as hexadecimal digits.
func read(words []string) (any, error) {
	return values(words[1], append(options(), kgo.ConsumeTopics(words[0]))...)
}

// group does the same as a consumer group, and commits.
func group(words []string) (any, error) {
	return values(
		words[1],
		append(options(), kgo.ConsumeTopics(words[0]), kgo.ConsumerGroup(told().Group))...,
	)
}

func values(number string, options ...kgo.Opt) (any, error) {
	wanted, err := strconv.Atoi(number)
	if err != nil {
		return nil, err
	}
	reader, err := kgo.NewClient(
		append(options, kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))...,
	)
	if err != nil {
		return nil, err
	}
	defer reader.Close()
	ctx, cancel := soon()
	defer cancel()
	found := []any{}
	for len(found) < wanted {
		polled := reader.PollFetches(ctx)
		if err := polled.Err(); err != nil {
			return nil, err
		}
		polled.EachRecord(func(record *kgo.Record) { found = append(found, shown(record.Value)) })
	}
	return found, reader.CommitUncommittedOffsets(ctx)
}

// schema returns id, version and text of the latest of a subject.
func schema(words []string) (any, error) {
	ctx, cancel := soon()
	defer cancel()
	found, err := registry.SchemaByVersion(ctx, words[0], -1)
	if err != nil {
		return nil, err
	}
	again, err := registry.SchemaByID(ctx, found.ID)
	if err != nil {
		return nil, err
	}
	return []any{found.ID, found.Version, again.Schema}, nil
}

func codeOf(err error) string {
	var told *kerr.Error
	if errors.As(err, &told) {
		return told.Message
	}
	var registered *sr.ResponseError
	if errors.As(err, &registered) {
		return strconv.Itoa(registered.ErrorCode)
	}
	return "client"
}
