// A sink that keeps records in Postgres, each once: command = ["postgres_sink", "postgres://user@host/database"].
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log"
	"os"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

const tables = `
SELECT pg_advisory_xact_lock(4711); -- of several that begin at once, one after the other
CREATE TABLE IF NOT EXISTS records (topic text, partition int, "offset" bigint, timestamp timestamptz, key bytea,
	value bytea);
CREATE TABLE IF NOT EXISTS set_aside (topic text, partition int, "offset" bigint, value bytea, reason text,
	PRIMARY KEY (topic, partition, "offset"));
CREATE TABLE IF NOT EXISTS writers (topic text, writer text, sequence bigint, PRIMARY KEY (topic, writer));
CREATE TABLE IF NOT EXISTS last (topic text, partition int, "offset" bigint, epoch bigint,
	PRIMARY KEY (topic, partition));`

// A request is one statement, and so one transaction: a program that is frozen holds up nobody. Whoever comes second
// waits at the row of the writer, and takes nothing where that was asked before, or the writer is sealed.
const (
	taking = `WITH taken AS (INSERT INTO writers VALUES (@topic, @writer, @sequence) ON CONFLICT (topic, writer)
		DO UPDATE SET sequence = greatest(writers.sequence, @sequence) WHERE writers.sequence < @below RETURNING topic),
		rows AS (SELECT topic, partition, "offset", timestamp, key, value FROM taken,
		unnest(@partitions::int[], @offsets::bigint[], @timestamps::timestamptz[], @keys::bytea[], @values::bytea[])
		AS row(partition, "offset", timestamp, key, value)),
		last AS (INSERT INTO last SELECT topic, partition, max("offset"), (@epochs::json ->> partition::text)::bigint
		FROM rows GROUP BY topic, partition ON CONFLICT (topic, partition)
		DO UPDATE SET "offset" = excluded."offset", epoch = excluded.epoch), `
	done   = " SELECT json_build_object()"
	sealed = int64(1<<63 - 1)
)

var statements = map[string]string{
	"begin": done,
	"write": taking + "kept AS (INSERT INTO records SELECT * FROM rows)" + done,
	"set_aside": taking + `kept AS (INSERT INTO set_aside SELECT topic, partition, "offset", value, @reason FROM rows
		ON CONFLICT DO NOTHING)` + done,
	"seal": taking + "kept AS (SELECT)" + done,
	"last": `SELECT json_build_object('last', coalesce(json_object_agg(partition, json_build_array("offset", epoch)),
		'{}')) FROM last WHERE topic = @topic AND partition = ANY(@partitions)`,
	"count": "SELECT json_build_object('rows', count(*)) FROM records WHERE topic = @topic",
}

var columns = []string{"partition", "offset", "timestamp", "key", "value"}

type request struct {
	Ask, Bytes, Sequence              int64
	Do, Topic, Writer, Sealed, Reason string
	Epochs                            json.RawMessage
	Partitions                        []int32
}

// The arguments of the statement; a column of the rows is an array.
func arguments(asked request, body []byte) pgx.NamedArgs {
	named := pgx.NamedArgs{"topic": asked.Topic, "writer": asked.Writer, "sequence": asked.Sequence, "below": sealed,
		"reason": asked.Reason, "epochs": asked.Epochs, "partitions": asked.Partitions}
	if asked.Do == "write" {
		named["below"] = asked.Sequence
	} else if asked.Do == "seal" {
		named["writer"], named["sequence"] = asked.Sealed, sealed
	}
	if len(body) == 0 {
		return named
	}
	for _, name := range columns {
		named[name+"s"] = []any{}
	}
	for rows := must(ipc.NewReader(bytes.NewReader(body))); rows.Next(); {
		for _, name := range columns {
			column := rows.RecordBatch().Column(rows.Schema().FieldIndices(name)[0])
			for row := range column.Len() {
				named[name+"s"] = append(named[name+"s"].([]any), value(column, row))
			}
		}
	}
	return named
}

func value(column arrow.Array, row int) any {
	if moments, ok := column.(*array.Timestamp); ok && moments.IsValid(row) {
		return moments.Value(row).ToTime(arrow.Microsecond)
	}
	return column.GetOneForMarshal(row)
}

func main() {
	ctx, input := context.Background(), bufio.NewReader(os.Stdin)
	db := must(pgx.Connect(ctx, os.Args[1]))
	must(db.Exec(ctx, tables))
	for {
		line, err := input.ReadBytes('\n')
		if err != nil {
			return // its input has ended
		}
		asked, says, refused := request{Epochs: json.RawMessage("{}")}, map[string]any{}, new(pgconn.PgError)
		must(0, json.Unmarshal(line, &asked))
		body := make([]byte, asked.Bytes)
		must(io.ReadFull(input, body))
		err = db.QueryRow(ctx, statements[asked.Do], arguments(asked, body)).Scan(&says)
		if errors.As(err, &refused) && (refused.Code[:2] == "22" || refused.Code[:2] == "23") {
			says["refused"], err = refused.Message, nil // a value that is none, or a constraint
		}
		says["ask"] = must(asked.Ask, err)
		must(os.Stdout.Write(append(must(json.Marshal(says)), '\n')))
	}
}

func must[T any](value T, err error) T {
	if err != nil {
		log.Fatal(err) // it is begun anew, and asked again
	}
	return value
}
