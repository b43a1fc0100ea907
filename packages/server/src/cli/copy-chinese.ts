/** The help of `rowpost copy` in Chinese, by its English texts. */
export const COPY_CHINESE: Readonly<Record<string, string>> = {
  "send a new message that is like an old one but for what is changed": "改动一条旧消息的部分内容，作为新消息发送",
  "id of the old message, which may be in the archive": "旧消息的 id，也可以在归档表里",
  "key of the new message: consumers know a message by its type and key":
    "新消息的业务键：消费者按类型和业务键识别消息",
  "another topic": "另一个主题",
  "another body, as it is stored: JSON, text, or base64 of a binary one":
    "另一个消息体，按存储的形式：JSON、文本，或二进制的 base64",
  "a header; may be given several times, and replaces all of the old ones":
    "消息头；可以写多次，会替换旧消息的全部消息头",
  "what becomes of the old message: keep, suspend or archive":
    "旧消息怎么处理：keep 保持不变，suspend 挂起，archive 归档",
};
