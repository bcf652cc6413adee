#!/bin/bash
# ready PORT [PATH [STATUS]]: 0 when http://127.0.0.1:PORT/readyz answers 200, or PATH with STATUS. In plain bash: it runs every few seconds in every container.
exec 3<>"/dev/tcp/127.0.0.1/$1" || exit 1
printf 'GET %s HTTP/1.0\r\n\r\n' "${2:-/readyz}" >&3
read -r -t 4 _ status _ <&3
[ "$status" = "${3:-200}" ]
