/** Uses Studio from the first sign-in to a published app, on a desktop and on a phone. */
import { tellStory } from "../web/studio-story.js";

tellStory(1280);
tellStory(390);
