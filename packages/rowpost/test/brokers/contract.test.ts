/**
 * The broker contract on the adapters that need no server but those which the tests start
 * themselves.
 */
import { bindBrokerContract } from "./bind.ts";
import { httpByTopicHarness, httpHarness, memoryHarness, routesHarness, stdoutHarness } from "./harnesses.ts";

bindBrokerContract("memory", memoryHarness);
bindBrokerContract("stdout", stdoutHarness);
bindBrokerContract("http with one url", httpHarness);
bindBrokerContract("http with a url by topic", httpByTopicHarness);
bindBrokerContract("routes to two http brokers", routesHarness);
