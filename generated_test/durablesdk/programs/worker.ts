// A worker: a process that serves the functions of functions.ts.
//
//	RESONATE_URL=http://127.0.0.1:8001 node worker.ts
//
// GROUP is the group of workers that it joins, LEASE the time in milliseconds after
// which another worker takes its functions over when this process has died.
import { Resonate } from "@resonatehq/sdk";
import * as functions from "./functions.ts";

const resonate = new Resonate({
  group: process.env.GROUP ?? "workers",
  ttl: Number(process.env.LEASE ?? 60_000),
  token: process.env.RESONATE_TOKEN, // on its own the SDK sends the variable with requests only, and gets no messages
});
for (const [name, f] of Object.entries(functions)) resonate.register(name, f);
