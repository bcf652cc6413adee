'use strict'
// What every program for Node here does: answer commands of its standard input as JSON.
const readline = require('node:readline')

/** What the program was told of the mesh. */
const options = JSON.parse(process.argv[2])

/** The value that `kind:text` is. */
function value(word) {
  const at = word.indexOf(':')
  const text = word.slice(at + 1)
  switch (word.slice(0, at)) {
    case 'null': return null
    case 'time': return new Date(text)
    case 'int': return Number(text)
    case 'double': return Number(text)
    case 'bool': return text === 'true'
    default: return text
  }
}

/** What stands in JSON for a value that JSON has not. */
function shown(found) {
  if (Buffer.isBuffer(found)) return found.toString('hex')
  if (found instanceof Date) return found.toISOString()
  if (typeof found === 'bigint') return String(found)
  if (typeof found === 'number' && !Number.isFinite(found)) return String(found)
  return found
}

function say(answer) {
  process.stdout.write(JSON.stringify(answer) + '\n')
}

/** Connect, tell the server's version, and do what standard input says until it ends. */
async function serve(connect, commands, end) {
  async function answer(work, ...words) {
    try {
      say({ answer: await work(...words) })
      return true
    } catch (wrong) {
      say({ error: String(wrong.code ?? wrong.type ?? wrong.name), message: wrong.message })
      return false
    }
  }
  if (!await answer(connect)) process.exit(0)
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const [name, ...words] = line.split('\t')
    await answer(commands[name], ...words)
  }
  await end()
}

module.exports = { options, value, shown, serve }
