// An operator at OpenClaw's gateway: sends a prompt, decides what it is asked, ends with the turn.
import { createHash, generateKeyPairSync, sign } from "node:crypto";

const [url, token, prompt, decisions, answers] = process.argv.slice(2);
const left = JSON.parse(decisions);
const SCOPES = ["read", "write", "admin", "approvals", "questions"].map((name) => `operator.${name}`);
const CONNECT = {
  minProtocol: 4,
  maxProtocol: 4,
  role: "operator",
  client: { id: "openclaw-tui", version: "0", platform: "linux", mode: "ui" },
  scopes: SCOPES,
  caps: ["tool-events", "approvals", "exec-approvals"],
  commands: [],
  permissions: {},
  auth: { token },
};

// A device of its own: the gateway pairs one that calls from the same machine.
const keys = generateKeyPairSync("ed25519");
const raw = keys.publicKey.export({ type: "spki", format: "der" }).subarray(-32);
const device = { id: createHash("sha256").update(raw).digest("hex"), publicKey: raw.toString("base64url") };

function signed({ nonce, ts }) {
  const { client, role } = CONNECT;
  const words = ["v2", device.id, client.id, client.mode, role, SCOPES.join(","), String(ts), token, nonce];
  const signature = sign(null, Buffer.from(words.join("|")), keys.privateKey).toString("base64url");
  return { ...CONNECT, device: { ...device, signature, signedAt: ts, nonce } };
}

function open() {
  const socket = new WebSocket(url);
  const waiting = new Map();
  const ask = (method, params) =>
    new Promise((done, failed) => {
      const id = `c${waiting.size}`;
      const text = JSON.stringify({ type: "req", id, method, params });
      waiting.set(id, { done, failed, text });
      socket.send(text);
    });
  const answered = (frame) => {
    const one = waiting.get(frame.id);
    if (frame.ok) one.done(frame.payload);
    else if (frame.error?.retryable) setTimeout(() => socket.send(one.text), frame.error.retryAfterMs ?? 500);
    else one.failed(new Error(JSON.stringify(frame.error)));
  };
  socket.onerror = () => {};
  // A gateway that is starting hangs up.
  socket.onclose = () => setTimeout(open, 500);
  socket.onmessage = async ({ data }) => {
    const frame = JSON.parse(data);
    const told = frame.payload ?? {};
    if (frame.type === "res") answered(frame);
    else if (frame.event === "connect.challenge") {
      await ask("connect", signed(told));
      await ask("chat.send", { sessionKey: "agent:main:main", message: prompt, idempotencyKey: "run-1" });
    } else if (frame.event === "exec.approval.requested") {
      await ask("approval.resolve", { id: told.id, kind: "exec", decision: left.shift() });
    } else if (frame.event === "question.requested") {
      await ask("question.resolve", { id: told.id, answers: { answers: JSON.parse(answers) } });
    } else if (frame.event === "chat" && ["final", "error", "aborted"].includes(told.state)) {
      console.log(told.state);
      process.exit(0);
    }
  };
}

open();
