/** Test file of a project folder, for the command `svc test`. The file uses each helper of `svc/test`, and contains one failing test. */
export const PROJECT_TEST = `import { equal, mock, ok, rejects, test } from "svc/test";
import { execute } from "./action";

test("has the folder's data source, without entries", async () => {
  const guests = await Svc.DataSources.connectByName("guests");
  equal((await guests.find()).length, 0);
  await guests.insert({ Name: "Ann" });
});
test("stands in for hosts and the clock", async () => {
  mock.fetch((request) => ({ from: request.url, method: request.method }));
  equal(await (await fetch("https://example.com/x")).json(), { from: "https://example.com/x", method: "GET" });
  const options = { url: "https://example.com/y", query: { a: 1 }, method: "POST", json: {}, responseType: "json" };
  const { status, ok: isOk, body } = await Svc.App.V3.Actions.request(options as never);
  equal([status, isOk, body], [200, true, { from: "https://example.com/y?a=1", method: "POST" }]);
  equal((await (await Svc.DataSources.connectByName("guests")).find()).length, 1);
  mock.time("2026-01-02T03:04:05Z");
  equal(new Date().toISOString(), "2026-01-02T03:04:05.000Z");
});
test("calls timers as the clock moves", async () => {
  const calls: string[] = [];
  const note = (name: string) => () => calls.push(name + " " + new Date().toISOString().slice(11, 19));
  mock.time("2026-01-02T03:00:00Z");
  setTimeout(note("late"), 7_200_000);
  setTimeout(note("hour"), 3_600_000);
  const beat = setInterval(note("beat"), 1_800_000);
  clearTimeout(setTimeout(note("cleared"), 1_000));
  const waited = (async () => {
    for (let minutes = 20; minutes <= 40; minutes += 20) {
      await new Promise((resolve) => setTimeout(resolve, 1_200_000));
      note("waited")();
    }
  })();
  await mock.time("2026-01-02T04:00:00Z");
  await waited;
  clearInterval(beat);
  const expected = ["waited 03:20:00", "beat 03:30:00", "waited 03:40:00", "hour 04:00:00", "beat 04:00:00"];
  equal(calls, expected);
  await mock.time("2026-01-02T04:59:59Z");
  equal(calls.length, expected.length);
  // A timer of 5 ms of real time runs, although the mocked clock stands still.
  await new Promise((resolve) => setTimeout(resolve, 5));
  equal(new Date().toISOString(), "2026-01-02T04:59:59.000Z");
});
test("gives the clock back", async () => ok(Date.now() > Date.UTC(2026, 5)));
test("names the author's line", async () => {
  await execute({ payload: { name: Symbol("no text") as never } });
});
test("expects rejections", async () => {
  const fail = async () => { throw new Error("status 503"); };
  await rejects(fail(), "503");
  await rejects(fail, /^status [0-9]+$/);
  await rejects(() => { throw new Error("at once"); });
  await rejects(rejects(fail, /404/), 'expected /404/ (got "status 503")');
  await rejects(rejects(fail, "404"), 'expected "404" (got "status 503")');
  await rejects(rejects(() => 1), "expected an error (got none)");
});
`;
