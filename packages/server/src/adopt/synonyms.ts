import type { LayoutColumns } from "rowpost";
import type { ColumnKind } from "./catalog.ts";

export interface Known {
  readonly property: keyof LayoutColumns;
  readonly isRequired: boolean;
  readonly kinds: readonly ColumnKind[];
  readonly names: readonly string[];
  readonly comment: RegExp;
}

const words = (text: string): string[] => text.split(" ");
const INSTANT = ["instant", "text"] as const;
const TEXT = ["text"] as const;

export const KNOWN: readonly Known[] = [
  {
    property: "id",
    isRequired: true,
    kinds: ["integer"],
    names: words("id pk msgid messageid eventid rowid seq seqno autoid"),
    comment: /主键|自增|primary key/i,
  },
  {
    property: "messageType",
    isRequired: true,
    kinds: TEXT,
    names: words(
      "messagetype msgtype biztype businesstype type kind eventtype eventname event bizcode businesscode scene category tag messagekind",
    ),
    comment: /业务类型|消息类型|事件类型|业务场景|业务编码|(message|event|business) (type|kind)|kind of/i,
  },
  {
    property: "messageKey",
    isRequired: true,
    kinds: TEXT,
    names: words(
      "messagekey msgkey bizkey businesskey key ref reference bizid businessid bizno businessno idempotentkey idempotencykey dedupkey uniquekey uniqkey outbizno eventkey requestid aggregateid transactionid",
    ),
    comment: /幂等|业务唯一|唯一键|业务键|业务(主键|单号|编号|ID)|去重|idempoten|dedup|business key|unique key/i,
  },
  {
    property: "topic",
    isRequired: true,
    kinds: TEXT,
    names: words(
      "topic topicname mqtopic destination channel exchange queue queuename target subject routingkey stream",
    ),
    comment: /topic|主题|目的地|交换机|队列|destination|exchange/i,
  },
  {
    property: "messageBody",
    isRequired: true,
    kinds: ["text", "json", "binary"],
    names: words(
      "messagebody msgbody body payload content messagecontent msgcontent data eventdata json message messagedata msg text",
    ),
    comment: /消息(内容|体|正文|数据)|报文|payload|message (body|content)|body of/i,
  },
  {
    property: "state",
    isRequired: true,
    kinds: ["integer", "text"],
    names: words(
      "state status messagestate messagestatus msgstate msgstatus sendstatus sendstate publishstatus eventstatus flag",
    ),
    comment: /状态|status|state\b/i,
  },
  {
    property: "retryCount",
    isRequired: true,
    kinds: ["integer"],
    names: words(
      "retrycount retrytimes retries tries trycount attempts attemptcount retrynum sendcount sendtimes retryno failcount retried",
    ),
    comment: /(重试|重发|尝试|发送|失败)次数|number of (tries|attempts|retries)|attempts/i,
  },
  {
    property: "nextRetryAt",
    isRequired: true,
    kinds: INSTANT,
    names: words(
      "nextretryat nextretrytime nextretry nexttry nexttryat nextattemptat nextattempt nextsendtime nextsendat nextexecutetime nextexectime retryat nextat dueat scheduledat nexttime nextruntime availableat",
    ),
    comment: /下(一|1)?次(重试|执行|发送|尝试)|next (retry|try|attempt|send)/i,
  },
  {
    property: "failReason",
    isRequired: true,
    kinds: TEXT,
    names: words(
      "failreason failurereason failedreason error errormsg errormessage lasterror errmsg failmsg failmessage reason errorinfo errorreason exception cause",
    ),
    comment: /失败原因|错误(信息|原因)|异常(信息|原因)|error|reason|why it failed/i,
  },
  {
    property: "gmtCreate",
    isRequired: true,
    kinds: INSTANT,
    names: words(
      "gmtcreate gmtcreated createdat createtime created createat createdtime creationtime createdon insertedat ctime addtime",
    ),
    comment: /创建时间|新增时间|creat(ed|ion) (at|time|on)|when .*(written|created)/i,
  },
  {
    property: "gmtModified",
    isRequired: true,
    kinds: INSTANT,
    names: words(
      "gmtmodified gmtupdate updatedat updatetime updated modified modifiedat modifytime modifiedtime changed changedat updateat lastupdate lastmodified mtime gmtmodify updatedtime",
    ),
    comment: /(修改|更新)时间|(last )?(modified|updated|changed)( at| time| on)?$|when .*changed/i,
  },
  {
    property: "lastRetryAt",
    isRequired: false,
    kinds: INSTANT,
    names: words(
      "lastretryat lastretrytime lasttry lasttryat lastexectime lastexecutetime lastsendtime lastattemptat lastattempt lastsentat",
    ),
    comment: /(上|最后|最近)一?次(重试|执行|发送|尝试)|last (retry|try|attempt|send)/i,
  },
  {
    property: "headers",
    isRequired: false,
    kinds: ["text", "json"],
    names: words("headers header messageheaders msgheaders properties attributes"),
    comment: /消息头|headers|properties/i,
  },
  {
    property: "contentType",
    isRequired: false,
    kinds: TEXT,
    names: words("contenttype mimetype mediatype"),
    comment: /content type|media type|媒体类型/i,
  },
  {
    property: "orderingKey",
    isRequired: false,
    kinds: TEXT,
    names: words("orderingkey orderkey shardingkey partitionkey sharding hashkey groupkey sequencekey"),
    comment: /顺序键|分区键|分片键|(ordering|partition|sharding) key/i,
  },
  {
    property: "deliverAt",
    isRequired: false,
    kinds: INSTANT,
    names: words("deliverat delayuntil delaytime deliverytime delivertime visibleat notbefore"),
    comment: /延时(到|至)|投递时间|deliver(y)? (at|time)/i,
  },
  {
    property: "messageId",
    isRequired: false,
    kinds: TEXT,
    names: words("messageid msgid mqmessageid mqmsgid receipt brokermessageid mqid sendmsgid rocketmqmsgid"),
    comment: /MQ ?消息.{0,4}ID|回执|broker.*id|receipt/i,
  },
  {
    property: "lockVersion",
    isRequired: false,
    kinds: ["integer"],
    names: words("lockversion version rowversion optlock versionno revision rev"),
    comment: /乐观锁|版本号|optimistic|row version/i,
  },
  {
    property: "sentAt",
    isRequired: false,
    kinds: INSTANT,
    names: words("sentat senttime sendtime publishedat publishtime sendat sendsuccesstime"),
    comment: /发送(成功)?时间|published at|sent at/i,
  },
  {
    property: "consumedAt",
    isRequired: false,
    kinds: INSTANT,
    names: words("consumedat consumetime confirmedat confirmtime consumedtime"),
    comment: /(消费|确认)时间|consumed at/i,
  },
  {
    property: "createdBy",
    isRequired: false,
    kinds: TEXT,
    names: words("createdby createby creator createuser author"),
    comment: /创建人|创建者|created by/i,
  },
  {
    property: "updatedBy",
    isRequired: false,
    kinds: TEXT,
    names: words("updatedby updateby modifiedby modifier updateuser updater"),
    comment: /(修改|更新)(人|者)|updated by/i,
  },
];
