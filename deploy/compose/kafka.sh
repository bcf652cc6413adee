#!/bin/bash
# Kafka with the mesh's password of a secret file, which is in no environment and on no command line. The mesh itself logs in by PLAIN,
# users of the catalog by SCRAM.
set -eu
umask 077
password=$(cat "${PENSTOCK_KAFKA_PASSWORD_FILE:?names the file with the password of the mesh itself}")
cat >/tmp/kafka.jaas <<JAAS
KafkaServer {
    org.apache.kafka.common.security.plain.PlainLoginModule required
        username="penstock" password="$password" user_penstock="$password";
    org.apache.kafka.common.security.scram.ScramLoginModule required;
};
JAAS
export KAFKA_OPTS="-Djava.security.auth.login.config=/tmp/kafka.jaas ${KAFKA_OPTS:-}"
# An only broker that was killed has left its old session behind, and may register when that has run out, by the session time it starts
# with: a short one then. A live broker keeps the long one, and so does each of several, whose controllers are others.
if [[ $KAFKA_CONTROLLER_QUORUM_VOTERS != *,* && -e $KAFKA_LOG_DIRS/__cluster_metadata-0/quorum-state && ! -e $KAFKA_LOG_DIRS/.kafka_cleanshutdown ]]; then
    export KAFKA_BROKER_SESSION_TIMEOUT_MS=2000 KAFKA_BROKER_HEARTBEAT_INTERVAL_MS=300
fi
exec /etc/kafka/docker/run
