// SPDX-License-Identifier: Apache-2.0
// Runs the statements of stdin, each on a line, as a program with Go's database/sql does: the driver begins and commits.
// page_sql.py starts it with the URL.
package main

import (
	"database/sql"
	"fmt"
	"io"
	"log"
	"os"
	"strings"

	_ "github.com/lib/pq"
)

func must[T any](value T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return value
}

func main() {
	tx := must(must(sql.Open("postgres", os.Args[1])).Begin())
	var version int
	if err := tx.QueryRow("select current_setting('server_version_num')::int").Scan(&version); err != nil {
		log.Fatal(err)
	}
	for _, statement := range strings.Split(string(must(io.ReadAll(os.Stdin))), "\n") {
		if statement == "begin" || statement == "commit" ||
			version < 170000 && strings.Contains(statement, "local transaction_timeout") {
			continue
		}
		if !strings.HasPrefix(statement, "select") {
			must(tx.Exec(statement))
			continue
		}
		rows := must(tx.Query(statement))
		leads := rows.Next()
		rows.Close()
		if err := rows.Err(); err != nil {
			log.Fatal(err)
		}
		if !leads {
			tx.Rollback()
			fmt.Println("refused")
			return
		}
	}
	if err := tx.Commit(); err != nil {
		log.Fatal(err)
	}
	fmt.Println("committed")
}
