import { defineAction } from "svc";

export const config = defineAction({
  description: "Frees the seats at night, for the next evening.",
  active: true,
  environment: "server",
  triggers: [
    {
      trigger: "schedule",
    },
  ],
  access: "editors",
  frequency: "0 3 * * *",
  dependencies: ["svc-datasources"],
});

/** At night, after the show: all seats are free again, and who sat there is forgotten. */
async function execute() {
  const seats = await Svc.DataSources.connectByName("bookings-seats");
  const sold = await seats.find({ where: { Taken: true } });
  const freed = sold.map(({ id, data }) => ({ id, data: { Seat: data["Seat"], Taken: false } }));
  if (freed.length > 0) await seats.commit({ entries: freed });
  console.log(`seats freed: ${freed.length}`);
}
