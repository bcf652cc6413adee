#!/bin/sh
# redis.sh server [MASTER] | sentinel | ping: Redis with the password of a secret file, which is in no command line and no environment.
set -eu
umask 077
password=$(cat /run/secrets/redis_password)
case $1 in
server)
    {
        printf 'requirepass %s\nmasterauth %s\n' "$password" "$password"
        printf 'bind * -::*\nport 6379\ndir /data\nappendonly yes\nappendfsync everysec\nsave ""\n'
        # names, not addresses: a container that comes back has another address
        printf 'replica-announce-ip %s\n' "$ANNOUNCE"
        [ -z "${2:-}" ] || printf 'replicaof %s 6379\n' "$2"
    } >/tmp/redis.conf
    exec redis-server /tmp/redis.conf
    ;;
sentinel)
    {
        printf 'port 26379\ndir /tmp\nrequirepass %s\nsentinel sentinel-pass %s\n' "$password" "$password"
        printf 'sentinel resolve-hostnames yes\nsentinel announce-hostnames yes\n'
        printf 'sentinel monitor penstock redis 6379 2\nsentinel auth-pass penstock %s\n' "$password"
        printf 'sentinel down-after-milliseconds penstock 3000\nsentinel failover-timeout penstock 10000\nsentinel parallel-syncs penstock 1\n'
    } >/tmp/sentinel.conf
    exec redis-server /tmp/sentinel.conf --sentinel
    ;;
ping)
    REDISCLI_AUTH=$password
    export REDISCLI_AUTH
    [ "$(redis-cli -p "${PORT:-6379}" ping)" = PONG ]
    ;;
esac
