#!/bin/bash
# spark-daemon master | worker MASTER_URL: a daemon of Spark's standalone cluster in the foreground.
# `spark-class` of pyspark works out the module options that Java wants; SPARK_WORKER_CORES and SPARK_WORKER_MEMORY are Spark's own settings.
set -euo pipefail
home=$(python -c 'import pathlib, importlib.util; print(pathlib.Path(importlib.util.find_spec("pyspark").origin).parent)')
export SPARK_HOME=$home SPARK_DAEMON_MEMORY=${SPARK_DAEMON_MEMORY:-256m} SPARK_WORKER_DIR=/tmp/work
# who does not know the secret is not served: it goes through a file, because command lines can be read by others
secret=$(cat "${PENSTOCK_SPARK_SECRET_FILE:?names the file of the secret that all of Spark shares}")
export SPARK_CONF_DIR=/tmp/conf
install -d -m 0700 "$SPARK_CONF_DIR"
cat >"$SPARK_CONF_DIR/spark-defaults.conf" <<END
spark.authenticate true
spark.authenticate.secret $secret
spark.master.rest.enabled false
spark.ui.filters org.apache.spark.ui.JWSFilter
spark.org.apache.spark.ui.JWSFilter.param.secretKey $(printf 'pages %s' "$secret" | sha256sum | cut -c 1-64)
END
unset secret
me=${SPARK_WORKER_HOST:-$(hostname)} # where others reach this one
case $1 in
master)
    # a master that comes back knows its workers and applications again
    export SPARK_MASTER_OPTS="-Dspark.deploy.recoveryMode=FILESYSTEM -Dspark.deploy.recoveryDirectory=/data/state/spark-master"
    mkdir -p /data/state/spark-master
    exec "$home/bin/spark-class" org.apache.spark.deploy.master.Master --host "${SPARK_MASTER_HOST:-$me}" --port 7077 --webui-port 8080
    ;;
worker)
    # of a worker that died its directory is left behind; the executors' logs are ours to bound
    export SPARK_WORKER_OPTS="-Dspark.worker.cleanup.enabled=true -Dspark.worker.cleanup.appDataTtl=3600"
    exec "$home/bin/spark-class" org.apache.spark.deploy.worker.Worker --host "$me" --webui-port 8081 "$2"
    ;;
*)
    echo "spark-daemon master | worker MASTER_URL" >&2
    exit 78
    ;;
esac
