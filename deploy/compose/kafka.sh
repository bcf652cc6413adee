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
exec /etc/kafka/docker/run
