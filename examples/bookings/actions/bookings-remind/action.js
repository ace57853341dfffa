import { defineAction } from "svc";

export const config = defineAction({
  description: "Three hours before the show, sends an e-mail for each sold seat.",
  active: true,
  environment: "server",
  triggers: [
    {
      trigger: "schedule",
    },
  ],
  access: "editors",
  frequency: "0 17 * * *",
  dependencies: ["svc-datasources", "svc-communicate"],
});

/** Sends one reminder for each seat that is sold for tonight. */
async function execute() {
  const seats = await Svc.DataSources.connectByName("bookings-seats");
  const soldSeats = await seats.find({ where: { Taken: true, Reminded: false } });
  const mails = [];
  for (const seat of soldSeats) {
    try {
      // Marks the seat before the e-mail is sent. So no guest gets a second reminder if this run ends early, or if two runs overlap.
      await seats.update(seat.id, { Reminded: true }, { ifUpdatedAt: seat.updatedAt });
    } catch (error) {
      if (error.status !== "ENTRY_CHANGED") throw error;
      continue;
    }
    const { Name, Email, Seat } = seat.data;
    mails.push({
      options: {
        to: [{ email: String(Email), name: String(Name) }],
        subject: "Tonight at eight: your seat {{seat}}",
        text: "Dear {{name}},\n\nthe curtain rises at eight, and seat {{seat}} waits for you.\n\nThe Small Theatre",
      },
      data: { name: Name, seat: Seat },
    });
  }
  if (mails.length > 0) await Svc.Communicate.batchSendEmail(mails);
  console.log(`reminders: ${mails.length}`);
}
