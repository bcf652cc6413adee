'use strict'
// pg, Node's client of PostgreSQL.
const { Client, types } = require('pg')
const Cursor = require('pg-cursor')
const { options, value, shown, serve } = require('told')

const names = Object.fromEntries(Object.entries(types.builtins).map(([name, oid]) => [oid, name]))
const client = new Client({
  host: options.host,
  port: options.postgres,
  user: options.user,
  password: options.password,
  database: options.database,
  options: `-c TimeZone=${options.zone ?? 'UTC'}`
})
let prepared = 0

async function connect() {
  await client.connect()
  return (await client.query('SHOW server_version')).rows[0].server_version
}

async function query(sql, ...words) {
  const asked = { text: sql, values: words.map(value), rowMode: 'array' }
  if (words.length) asked.name = `s${++prepared}`
  const found = await client.query(asked)
  return {
    columns: found.fields.map((field) => [field.name, names[field.dataTypeID]]),
    rows: found.rows.map((row) => row.map(shown))
  }
}

/** Read rows some at a time, by a portal. */
async function many(sql, size) {
  const cursor = client.query(new Cursor(sql, [], { rowMode: 'array' }))
  let count = 0
  let sum = 0n
  for (let rows = await cursor.read(Number(size)); rows.length; rows = await cursor.read(Number(size))) {
    count += rows.length
    for (const row of rows) sum += BigInt(row[0])
  }
  await cursor.close()
  return [count, Number(sum)]
}

/** Ask several questions; the client queues them. */
async function at_once(...statements) {
  const found = await Promise.all(statements.map((text) => client.query({ text, rowMode: 'array' })))
  return found.map((one) => one.rows.map((row) => row.map(shown)))
}

/** Run statements as one transaction that is rolled back; how each ended. */
async function transaction(...statements) {
  const ended = []
  await client.query('BEGIN')
  for (const sql of statements) {
    ended.push(await client.query(sql).then(() => 'ok', (wrong) => wrong.code))
  }
  await client.query('ROLLBACK')
  return ended
}

serve(connect, { query, many, at_once, transaction }, () => client.end())
