// Serves an agent's command at a WebSocket, as the protocol's own SDK does it: node serve.mjs SDK WS COMMAND…
// SDK and WS are folders of packages. Prints its address.
import { spawn } from "node:child_process";
import { createServer } from "node:http";
import { join } from "node:path";
import { Readable, Writable } from "node:stream";
import { pathToFileURL } from "node:url";

const [sdk, ws, ...command] = process.argv.slice(2);
const from = (folder, file) => import(pathToFileURL(join(folder, file)).href);
const { AcpServer } = await from(sdk, "dist/transports/server.js");
const { createNodeHttpHandler, createNodeWebSocketUpgradeHandler } = await from(sdk, "dist/transports/node-adapter.js");
const { ndJsonStream } = await from(sdk, "dist/v1/stable/acp.js");
const { WebSocketServer } = await from(ws, "wrapper.mjs");

const connect = (stream) => {
  const child = spawn(command[0], command.slice(1), { stdio: ["pipe", "pipe", "inherit"] });
  const frames = ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout));
  const over = () => child.kill();
  frames.readable.pipeTo(stream.writable).then(over, over);
  stream.readable.pipeTo(frames.writable).then(over, over);
};
const server = new AcpServer({ createAgent: () => ({ connect }) });
const http = createServer(createNodeHttpHandler(server));
http.on("upgrade", createNodeWebSocketUpgradeHandler(server, new WebSocketServer({ noServer: true })));
http.listen(0, "127.0.0.1", () => console.log(`ws://127.0.0.1:${http.address().port}/acp`));
