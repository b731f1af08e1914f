// Serves an emulator of GitHub on loopback until standard input ends. The first line of it is what it begins with.
import { createInterface } from 'node:readline'

const lines = createInterface({ input: process.stdin })
lines.once('line', async (line) => {
  const { createEmulator } = await import(process.argv[1])
  const github = await createEmulator({ service: 'github', port: 0, hostname: '127.0.0.1', seed: JSON.parse(line) })
  console.log(github.url)
})
lines.once('close', () => process.exit(0))
