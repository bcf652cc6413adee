'use strict'
// kafkajs, with its client of schema registries.
const { Kafka, Partitioners, logLevel } = require('kafkajs')
const { SchemaRegistry } = require('@kafkajs/confluent-schema-registry')
const { options, serve } = require('told')

const kafka = new Kafka({
  clientId: 'kafkajs',
  brokers: [options.kafka],
  sasl: { mechanism: 'scram-sha-256', username: options.user, password: options.password },
  ssl: false,
  logLevel: logLevel.NOTHING,
  retry: { retries: 2 }
})
const registry = new SchemaRegistry({
  host: `http://${options.host}:${options.http}`,
  auth: { username: options.user, password: options.password }
})
const producer = kafka.producer({ createPartitioner: Partitioners.DefaultPartitioner })
const admin = kafka.admin()

async function connect() {
  await producer.connect()
  await admin.connect()
  return 'connected'
}

function topics() {
  return admin.listTopics()
}

/** Send values to a topic: topic, key, value, value, … */
async function publish(topic, key, ...values) {
  const messages = values.map((text) => ({ key, value: Buffer.from(text, 'hex') }))
  await producer.send({ topic, messages, acks: -1 })
  return values.length
}

/** Send a batch of rows in the schema of a subject. */
async function rows(topic, subject, key, text) {
  const id = await registry.getLatestSchemaId(subject)
  const value = await registry.encode(id, JSON.parse(text))
  await producer.send({ topic, messages: [{ key, value }], acks: -1 })
  return id
}

/** Read so many values of a topic from its beginning, as a consumer group. */
async function group(topic, number) {
  const consumer = kafka.consumer({ groupId: options.group })
  await consumer.connect()
  await consumer.subscribe({ topic, fromBeginning: true })
  const found = []
  const all = new Promise((resolve) => {
    consumer.run({
      eachMessage: async ({ message }) => {
        found.push(message.value.toString('hex'))
        if (found.length >= Number(number)) resolve()
      }
    })
  })
  await all
  await consumer.disconnect()
  return found
}

/** Decode a value by its schema. */
function decode(text) {
  return registry.decode(Buffer.from(text, 'hex'))
}

async function schema(subject) {
  const id = await registry.getLatestSchemaId(subject)
  return [id, (await registry.getSchema(id)).type]
}

async function end() {
  await producer.disconnect()
  await admin.disconnect()
}

serve(connect, { topics, publish, rows, group, decode, schema }, end)
