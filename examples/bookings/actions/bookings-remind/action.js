import { defineAction } from "svc";

export const config = defineAction({
  description: "Three hours before the curtain rises, sends a reminder to every guest.",
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

/** Each afternoon: one reminder for each seat that is sold for tonight. */
async function execute() {
  const seats = await Svc.DataSources.connectByName("bookings-seats");
  const sold = await seats.find({ where: { Taken: true, Reminded: false } });
  const mails = [];
  for (const seat of sold) {
    try {
      // Marked before the mail is sent: should this run be killed, or two run at once, nobody is reminded twice.
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
