// Compares the server with the reference server that the SDK contains: random requests go
// to both, at the same times, and must have the same responses.
//
//	node compare.ts SEED RUNS
//
// The server must have been started with --debug. Sentences of errors may differ. The
// requests avoid the places where the reference server is more tolerant on purpose: it
// lets a promise be awaited that is not external, or that belongs to another workflow,
// and it lets a task settle its own promise with task.fence.
import { isDeepStrictEqual } from "node:util";
import { isResponse, LocalNetwork } from "@resonatehq/sdk";

const url = process.env.RESONATE_URL ?? "";
const version = "2026-04-01";
const [firstSeed, runs] = process.argv.slice(2).map(Number);
const requestsPerRun = 100;

type Request = { kind: string; head: Record<string, unknown>; data: any };
type Outcome = { status: number; data: any };

// random returns the numbers of a linear congruential generator (those of POSIX).
function random(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1103515245) + 12345) & 0x7fffffff;
    return (state >> 8) % below;
  };
}

// A run sends requests about a few promises of two workflows.
class Run {
  now = 1_000_000;
  ids = ["a", "a:0", "a:1", "b", "b:0"];
  tasks = new Map<string, { state: string; version: number }>(); // as the last responses showed them
  below: (n: number) => number;

  constructor(seed: number) {
    this.below = random(seed);
    this.now += seed;
  }

  pick<T>(list: T[]): T {
    return list[this.below(list.length)];
  }

  others(id: string, sameWorkflow: boolean): string[] {
    return this.ids.filter((other) => other !== id && (!sameWorkflow || other[0] === id[0]));
  }

  // version returns the version of a task, and rarely another one.
  version(id: string): number {
    return this.below(20) === 0 ? this.below(4) : (this.tasks.get(id)?.version ?? 0);
  }

  request(kind: string, data: any): Request {
    return { kind, head: { corrId: `at ${this.now}`, version, "resonate:debug_time": this.now }, data };
  }

  create(id: string): Request {
    const tags: Record<string, string> = {
      "resonate:origin": id[0],
      "resonate:branch": this.pick([id, id[0]]),
      "resonate:parent": id[0],
    };
    const target = { "resonate:target": "poll://any@g" };
    Object.assign(tags, this.pick([
      { ...target, "resonate:scope": "global" },
      { ...target, "resonate:scope": "global" },
      { ...target, "resonate:timer": "true" },
      { "resonate:external": "true" },
      { "resonate:scope": "global" },
      target,
    ]));
    const timeoutAt = this.now + this.pick([-10, 0, 2000, 10_000, 100_000, 1_000_000]);
    return this.request("promise.create", { id, timeoutAt, param: { headers: {}, data: this.pick(["", "eA=="]) }, tags });
  }

  settle(id: string): Request {
    const state = this.pick(["resolved", "rejected", "rejected_canceled"]);
    return this.request("promise.settle", { id, state, value: { headers: {}, data: this.pick(["", "dg=="]) } });
  }

  await(awaiter: string): Request {
    return this.request("promise.register_callback", { awaited: this.pick(this.others(awaiter, true)), awaiter });
  }

  // next returns a random request.
  next(): Request {
    const what = this.below(20);
    const acquired = this.ids.filter((id) => this.tasks.get(id)?.state === "acquired");
    const id = this.pick(what >= 13 && acquired.length > 0 && this.below(5) ? acquired : this.ids);
    const task = { id, version: this.version(id) };
    const worker = { pid: this.pick(["p", "q"]), ttl: this.pick([5000, 50_000]) };
    switch (what) {
      case 0:
        return this.request("promise.get", { id });
      case 1:
      case 2:
        return this.create(id);
      case 3:
        return this.below(2) ? this.settle(id) : this.request("promise.get", { id });
      case 4:
        return this.await(id);
      case 5:
        return this.request("promise.register_listener", { awaited: id, address: "poll://uni@g/p" });
      case 6:
        return this.request("task.get", { id });
      case 7:
      case 8:
        return this.request("task.create", { ...worker, action: this.create(id) });
      case 9:
      case 10:
      case 11:
      case 12:
        return this.request("task.acquire", { ...task, ...worker });
      case 13:
        return this.request("task.release", task);
      case 14:
        return this.request("task.fulfill", { ...task, action: this.settle(this.below(9) ? id : this.pick(this.ids)) });
      case 15:
      case 16:
        return this.request("task.suspend", { ...task, actions: [this.await(id), this.await(id)].slice(this.below(2)) });
      case 17: {
        const other = this.pick(this.others(id, false));
        return this.request("task.fence", { ...task, action: this.below(2) ? this.create(other) : this.settle(other) });
      }
      case 18: {
        const tasks = this.ids.map((id) => ({ id, version: this.version(id) }));
        return this.request("task.heartbeat", { pid: worker.pid, tasks });
      }
      default:
        return this.request(this.pick(["task.halt", "task.continue"]), { id });
    }
  }

  // plain returns a response without differences that have no meaning: the order of sets,
  // empty headers, and sentences. The reference server preloads promises as they are
  // stored, also if their deadline has passed.
  plain(status: number, data: any, kind: string): Outcome {
    if (status >= 400) return { status, data: "" };
    const copy = JSON.parse(JSON.stringify(data), (key, value) => {
      if (key === "headers" && Object.keys(value).length === 0) return undefined;
      if (key === "resumes") return value.sort();
      if (key !== "preload") return value;
      for (const p of value) {
        if (p.state !== "pending" || this.now < p.timeoutAt) continue;
        p.state = p.tags["resonate:timer"] === "true" ? "resolved" : "rejected_timedout";
        p.settledAt = p.timeoutAt;
      }
      return value.sort((p: any, q: any) => (p.id < q.id ? -1 : 1));
    });
    if (copy.action) copy.action = this.plain(copy.action.head.status, copy.action.data, copy.action.kind);
    // It preloads nothing for a task that has ended.
    if (kind === "task.create" && copy.task.state === "fulfilled") delete copy.preload;
    return { status, data: copy };
  }
}

async function post(request: Request): Promise<any> {
  const response = await fetch(url, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(request) });
  const body = await response.json();
  const sound = isResponse(body) && body.kind === request.kind && body.head.corrId === request.head.corrId && body.head.status === response.status;
  if (!sound) throw new Error(`${JSON.stringify(request)}\ngot ${response.status} ${JSON.stringify(body)}`);
  return body;
}

const statuses = new Map<string, number>();
for (let seed = firstSeed; seed < firstSeed + runs; seed++) {
  const run = new Run(seed);
  const reference = (new LocalNetwork() as any).server;
  await post(run.request("debug.start", {}));
  await post(run.request("debug.reset", {}));
  const log = [];
  for (let i = 0; i < requestsPerRun; i++) {
    let request = i < run.ids.length ? run.create(run.ids[i]) : run.next();
    if (run.below(5) === 0) {
      run.now += run.pick([1, 400, 1000, 3000, 31_000]);
      request = run.request("debug.tick", { time: run.now });
    }
    log.push(JSON.stringify(request));
    const expected = reference.apply(run.now, structuredClone(request)).response;
    const got = await post(request);
    if (request.kind === "debug.tick") continue; // its data is not specified
    const want = run.plain(expected.head.status, expected.data, request.kind);
    const have = run.plain(got.head.status, got.data, request.kind);
    if (!isDeepStrictEqual(have, want)) {
      console.log(`seed ${seed}: after\n${log.join("\n")}\ngot\n${JSON.stringify(got)}\nwant\n${JSON.stringify(expected)}`);
      process.exit(1);
    }
    if (got.data?.task) run.tasks.set(got.data.task.id, got.data.task);
    const outcome = `${request.kind} ${got.head.status}`;
    statuses.set(outcome, (statuses.get(outcome) ?? 0) + 1);
  }
}
console.log([...statuses].map(([outcome, n]) => `${outcome}: ${n}\n`).sort().join(""));
