module pq

go 1.24

require github.com/lib/pq v1.12.3
