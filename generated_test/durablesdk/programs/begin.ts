// Begins a call, and does not wait for it:
//
//	node begin.ts ID FUNCTION [ARGUMENT...]
//
// Each argument is JSON. GROUP is the group of workers that serve the function.
import { Never, Resonate } from "@resonatehq/sdk";

const [id, name, ...args] = process.argv.slice(2);
const resonate = new Resonate({ group: "begin", token: process.env.RESONATE_TOKEN });
const options = resonate.options({ target: process.env.GROUP ?? "workers", retryPolicy: new Never() });
const handle = await resonate.beginRpc(id, name, ...args.map((text) => JSON.parse(text)), options);
console.log("began", handle.id);
await resonate.stop();
