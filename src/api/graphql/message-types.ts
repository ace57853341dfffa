/** GraphQL types of messages: only declarations. */
import { GraphQLJSON } from "graphql-scalars";
import { Field, InputType, Int, ObjectType } from "type-graphql";
import { PaginationType } from "./action-types.js";
import { DateTime, MessageKindEnum, MessageStatusEnum } from "./leaf-types.js";
import { DEPRECATED_IN_FAVOR_OF_PAGE, ListPageType, PageItemsField } from "./page-types.js";

@ObjectType("MessageReceipt", { description: "Stored message." })
export class MessageReceiptType {
  @Field(() => Int, { description: "ID of the message." }) id: number;
  @Field(() => MessageStatusEnum, { description: "Status of the message." }) status: string;
}

@ObjectType("MessageRecipient", { description: "Recipient of a message." })
class MessageRecipientType {
  @Field(() => String, { description: "E-mail address or phone number." }) address: string;
  @Field(() => String, { nullable: true, description: "Name of the recipient; null if it is unknown." }) name:
    | string
    | null;
  @Field(() => String, {
    nullable: true,
    description: "Kind of recipient of an e-mail: to, cc or bcc; null for text messages.",
  })
  type: string | null;
  @Field(() => String, {
    nullable: true,
    description:
      "Outcome for this recipient: sent, delivered, rejected, bounced or complained; null until the message was tried.",
  })
  status: string | null;
  @Field(() => String, { nullable: true, description: "Reply of the server; null if there is none." }) detail:
    | string
    | null;
}

@ObjectType("MessageSummary", { description: "Message in a list." })
export class MessageSummaryType {
  @Field(() => Int, { description: "ID of the message." }) id: number;
  @Field(() => MessageKindEnum, { description: "Kind of message." }) kind: string;
  @Field(() => MessageStatusEnum, { description: "Status of the message." }) status: string;
  @Field(() => String, { nullable: true, description: "Subject of an e-mail; null for text messages." }) subject:
    | string
    | null;
  @Field(() => [MessageRecipientType], { description: "Recipients; a list of messages returns the first five." })
  to: MessageRecipientType[];
  @Field(() => Int, { description: "Number of recipients." }) recipients: number;
  @Field(() => Int, { description: "Number of delivery attempts." }) attempts: number;
  @Field(() => String, { nullable: true, description: "Last reply of the server; null if there is none." }) detail:
    | string
    | null;
  @Field(() => DateTime, { nullable: true, description: "Time of the next delivery attempt; null if none is planned." })
  dueAt: string | null;
  @Field(() => DateTime, { description: "Time of creation." }) createdAt: string;
  @Field(() => DateTime, { description: "Time of the last change." }) updatedAt: string;
}

@ObjectType("MessageAttachment", { description: "File attached to an e-mail." })
class MessageAttachmentType {
  @Field(() => String, { description: "Media type, for example text/csv." }) type: string;
  @Field(() => String, { description: "Name of the file." }) name: string;
  @Field(() => String, { description: "Encoding of `content`: base64 or utf8." }) encoding: string;
  @Field(() => String, { description: "Contents of the file." }) content: string;
}

@ObjectType("MessageHeader", { description: "Additional header of an e-mail." })
export class MessageHeaderType {
  @Field(() => String, { description: "Name of the header." }) name: string;
  @Field(() => String, { description: "Value of the header." }) value: string;
}

@ObjectType("Message", { description: "Message with its content and all recipients." })
export class MessageType extends MessageSummaryType {
  @Field(() => String, { nullable: true, description: "Name of the sender; null if none is set." }) fromName:
    | string
    | null;
  @Field(() => String, { nullable: true, description: "HTML body of an e-mail; null if there is none." }) html:
    | string
    | null;
  @Field(() => String, { nullable: true, description: "Plain text body; null if there is none." }) text: string | null;
  headers: Record<string, string>;
  @Field(() => [MessageAttachmentType], { description: "Attached files." }) attachments: MessageAttachmentType[];
}

@ObjectType("MessageList", { implements: ListPageType, description: "Page of messages." })
export class MessageListType {
  @PageItemsField(() => [MessageSummaryType], "Messages on this page.") messages: MessageSummaryType[];
  @Field(() => PaginationType, { ...DEPRECATED_IN_FAVOR_OF_PAGE, description: "Position of this page in the list." })
  pagination: PaginationType;
}

@InputType("EmailRecipientInput", { description: "Recipient of an e-mail." })
class EmailRecipientInput {
  @Field(() => String, { nullable: true, description: "E-mail address; required." }) email?: unknown;
  @Field(() => String, { nullable: true, description: "Name of the recipient." }) name?: unknown;
  @Field(() => String, { nullable: true, description: "Kind of recipient: to, cc or bcc; to by default." })
  type?: unknown;
}

@InputType("MessageHeaderInput", { description: "Additional header of an e-mail." })
class MessageHeaderInput {
  @Field(() => String, { nullable: true, description: "Name of the header; required." }) name?: unknown;
  @Field(() => String, { nullable: true, description: "Value of the header; required." }) value?: unknown;
}

@InputType("AttachmentInput", { description: "File to attach to an e-mail." })
class AttachmentInput {
  @Field(() => String, {
    nullable: true,
    description: "Media type, for example text/csv; application/octet-stream by default.",
  })
  type?: unknown;
  @Field(() => String, { nullable: true, description: "Name of the file, without slashes; required." }) name?: unknown;
  @Field(() => String, { nullable: true, description: "Contents of the file; required." }) content?: unknown;
  @Field(() => String, { nullable: true, description: "Encoding of `content`: base64 or utf8; utf8 by default." })
  encoding?: unknown;
}

@InputType("EmailInput", {
  description:
    "E-mail to send. Values of the object `data`, which is sent beside it, replace placeholders such as `{{name}}`.",
})
export class EmailInput {
  @Field(() => [EmailRecipientInput], { nullable: true, description: "Recipients, 1 to 1000; required." }) to?: unknown;
  @Field(() => String, { nullable: true, description: "Subject of the e-mail." }) subject?: unknown;
  @Field(() => String, { nullable: true, description: "Name of the sender; the app determines the address." })
  fromName?: unknown;
  @Field(() => String, {
    nullable: true,
    description: "Name of the sender.",
    deprecationReason: "Use `fromName`.",
  })
  from_name?: unknown;
  @Field(() => String, { nullable: true, description: "HTML body. An e-mail needs `html`, `text` or both." })
  html?: unknown;
  @Field(() => String, { nullable: true, description: "Plain text body. An e-mail needs `html`, `text` or both." })
  text?: unknown;
  @Field(() => [MessageHeaderInput], { nullable: true, description: "Additional headers." }) headers?: unknown;
  @Field(() => [AttachmentInput], { nullable: true, description: "Files to attach." }) attachments?: unknown;
}

@InputType("EmailOfBatchInput", { description: "E-mail of a batch with its placeholder values." })
export class BatchEmailInput {
  @Field(() => EmailInput, { nullable: true, description: "E-mail to send." }) options?: unknown;
  @Field(() => GraphQLJSON, {
    nullable: true,
    description: "Values for `{{name}}` placeholders in the e-mail, an object.",
  })
  data?: unknown;
}

@InputType("SmsInput", { description: "Text message to send." })
export class SmsInput {
  @Field(() => String, { nullable: true, description: "Phone number of the recipient, for example +15550100." })
  to?: unknown;
  @Field(() => String, { nullable: true, description: "Text of the message." }) body?: unknown;
  @Field(() => String, {
    nullable: true,
    description: "Phone number or name of the sender; the app's sender by default.",
  })
  from?: unknown;
  @Field(() => String, {
    nullable: true,
    description: "Provider that sends the message: twilio or webhook; the app's provider by default.",
  })
  provider?: unknown;
}
