import { defineAction } from "svc";

export const config = defineAction({
  description: "At night, frees the seats for the next evening.",
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

/** Frees all seats after the show. Replaces their entries, so that the names and addresses of the guests are deleted too. */
async function execute() {
  const seats = await Svc.DataSources.connectByName("bookings-seats");
  const soldSeats = await seats.find({ where: { Taken: true } });
  const freeSeats = soldSeats.map(({ id, data }) => ({ id, data: { Seat: data["Seat"], Taken: false } }));
  if (freeSeats.length > 0) await seats.commit({ entries: freeSeats });
  console.log(`seats freed: ${freeSeats.length}`);
}
