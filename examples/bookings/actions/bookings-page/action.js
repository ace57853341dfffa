import { defineAction } from "svc";

export const config = defineAction({
  description: "Draws the page of the theatre, and updates the seats when guests book.",
  active: true,
  environment: "client",
  triggers: [
    {
      trigger: "analytics",
      where: {
        type: "analytics.pageView",
      },
    },
  ],
  dependencies: ["svc-datasources", "svc-session"],
});

/** Replaces the content of the app's page by the page of the theatre. Visitors can read which seats are taken, but no names. */
async function execute() {
  if (document.querySelector("#bookings")) return;
  const { title = "", when = "" } = /** @type {Record<string, string>} */ (window.ENV?.appSettings?.["bookings"] ?? {});
  document.querySelector("main")?.replaceChildren(createSection(title, when));

  const noteElement = getElement("#bookings-note");
  const guestElement = getElement("#bookings-guest");
  /** @param {string} text */
  const showNote = (text) => {
    noteElement.textContent = text;
  };

  /** @param {SubmitEvent} event */
  async function signIn(event) {
    event.preventDefault();
    const fields = new FormData(/** @type {HTMLFormElement} */ (event.target));
    const where = { Email: String(fields.get("email")), Password: String(fields.get("password")) };
    try {
      await Svc.Session.authorize({ passport: "dataSource", dataSourceName: "bookings-guests", where });
    } catch (error) {
      return showNote(error.status === "UNAUTHORIZED" ? "The e-mail address or the password is wrong." : error.message);
    }
    const session = await Svc.Session.get();
    guestElement.textContent = `Signed in as ${session?.entries?.dataSource.data["Name"]}.`;
    showNote("Choose a seat.");
  }
  getElement("#bookings-guest form").addEventListener("submit", signIn);

  /** @param {string} seat */
  async function book(seat) {
    showNote(`Booking ${seat} …`);
    try {
      /** @type {{ refused?: string }} */
      const { refused } = await Svc.App.V3.Actions.runWithResult("bookings-book", { seat });
      if (refused) return showNote(refused);
    } catch (error) {
      return showNote(error.message);
    }
    // This event starts the action bookings-thanks.
    Svc.App.Analytics.event("booked", { seat });
  }

  const seats = await Svc.DataSources.connectByName("bookings-seats");
  async function showSeats() {
    const entries = await seats.find({ order: [["data.Seat", "ASC"]] });
    const buttons = entries.map(({ data }) => {
      const name = String(data["Seat"]);
      const disabled = data["Taken"] === true;
      const button = Object.assign(document.createElement("button"), { type: "button", textContent: name, disabled });
      button.setAttribute("aria-label", disabled ? `${name}, taken` : name);
      button.onclick = () => book(name);
      return button;
    });
    getElement("#bookings-seats").replaceChildren(...buttons);
  }
  await showSeats();
  // Shows the bookings of other guests.
  seats.subscribe({}, showSeats);
}

/** @param {string} selector */
function getElement(selector) {
  return /** @type {HTMLElement} */ (document.querySelector(selector));
}

/**
 * @param {string} title
 * @param {string} when
 */
function createSection(title, when) {
  const section = Object.assign(document.createElement("section"), { id: "bookings" });
  section.innerHTML = `
    <style>
      #bookings { text-align: center; }
      #bookings-stage { background: #3a3f47; color: #fff; border-radius: 6px; padding: .3rem; margin: 1.5rem auto; max-width: 28rem; }
      #bookings-seats { display: grid; grid-template-columns: repeat(6, minmax(0, 3.5rem)); gap: .6rem; justify-content: center; }
      #bookings-seats button { height: 3rem; border: 1px solid #1a6f4b; border-radius: 8px 8px 3px 3px; background: #e4f6ec; color: #0d4b30; }
      #bookings-seats button:disabled { border-color: #c8ccd2; background: #eceef1; color: #6b7078; cursor: not-allowed; }
      #bookings-note { min-height: 1.5rem; margin: 1.5rem 0; font-weight: 600; }
      #bookings form { justify-content: center; display: flex; gap: .5rem; flex-wrap: wrap; }
    </style>
    <h1></h1>
    <p></p>
    <div id="bookings-stage">stage</div>
    <div id="bookings-seats" role="group" aria-label="Seats"></div>
    <p id="bookings-note" role="status"></p>
    <div id="bookings-guest"><form>
      <input name="email" type="email" placeholder="E-mail" aria-label="E-mail" required>
      <input name="password" type="password" placeholder="Password" aria-label="Password" required>
      <button>Sign in</button>
    </form></div>`;
  // Sets the texts of the setting as text, so that they cannot contain markup.
  const [heading, paragraph] = section.querySelectorAll("h1, p");
  if (heading) heading.textContent = title;
  if (paragraph) paragraph.textContent = when;
  return section;
}
