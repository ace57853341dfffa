/** Entry script of Studio. Requests the session and the data of Home, and at the same time loads the scripts that render the page. */
import "./style/tokens.css";
import "./style/base.css";
import "./style/shell.css";
import "./style/layout.css";
import "./style/panels.css";
import "./style/media.css";
import "./style/records.css";
import "./style/data.css";
import "./style/app.css";
import "./style/runs.css";
import "./style/home.css";
import "./style/phone.css";
import "./style/connections.css";
import "./style/mailbox.css";
import "./style/accounts.css";
import "./style/docs.css";
import { startInitialRequests } from "./shell/start.js";

startInitialRequests();
void import("./shell/root.js");
