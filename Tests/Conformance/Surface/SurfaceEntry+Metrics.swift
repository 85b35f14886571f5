extension SurfaceEntry {
    /// Section K: metrics.
    static let metrics: [SurfaceEntry] = [
        .proven("K1", "URLSessionTaskMetrics", by: "TaskMetricsTests.holdTheTransactionsInTheirOrder"),
        .proven("K2", "transactionMetrics", by: "TaskMetricsTests.holdTheTransactionsInTheirOrder"),
        .proven("K3", "taskInterval", by: "TaskMetricsTests.holdTheTransactionsInTheirOrder"),
        .proven("K4", "redirectCount", by: "TaskMetricsTests.holdTheTransactionsInTheirOrder"),
        .proven("K5", "ResourceFetchType", by: "TaskMetricsTests.numberTheirChoicesAsFoundationDoes"),
        .proven("K6", "DomainResolutionProtocol", by: "TaskMetricsTests.numberTheirChoicesAsFoundationDoes"),
        .proven(
            "K7", "URLSessionTaskTransactionMetrics",
            by: "TransactionMetricsTests.endWithTheStepThatDidNotEnd",
            "TransactionMetricsTests.endWithTheResponseThatBrokeOff"),
        .proven("K8", "tls_protocol_version_t", by: "URLSessionConfigurationTests.numberTheirChoicesAsFoundationDoes"),
        .proven(
            "K9", "tls_ciphersuite_t",
            by: "TaskMetricsTests.numberTheirChoicesAsFoundationDoes",
            "TransactionMetricsTests.doNotNameACipherSuiteThatHasNoName"),
        .proven("K10", "request", by: "TransactionMetricsTests.tellEveryStepInItsOrder"),
        .proven("K11", "response", by: "TransactionMetricsTests.tellEveryStepInItsOrder"),
        .proven("K12", "fetchStartDate", by: "TransactionMetricsTests.tellEveryStepInItsOrder"),
        .proven(
            "K13", "domainLookupStartDate",
            by: "TransactionMetricsTests.tellEveryStepInItsOrder",
            "TransactionMetricsTests.haveNoLookupWhereTheHostIsAnAddress"),
        .proven("K14", "domainLookupEndDate", by: "TransactionMetricsTests.tellEveryStepInItsOrder"),
        .proven(
            "K15", "connectStartDate",
            by: "TransactionMetricsTests.tellEveryStepInItsOrder",
            "TransactionMetricsTests.haveNothingOfOpeningWhereAConnectionIsUsedAgain"),
        .proven(
            "K16", "secureConnectionStartDate",
            by: "TransactionMetricsTests.tellEveryStepInItsOrder",
            "TransactionMetricsTests.haveNothingOfSecurityWithoutTLS"),
        .proven("K17", "secureConnectionEndDate", by: "TransactionMetricsTests.tellEveryStepInItsOrder"),
        .proven("K18", "connectEndDate", by: "TransactionMetricsTests.tellEveryStepInItsOrder"),
        .proven("K19", "requestStartDate", by: "TransactionMetricsTests.tellEveryStepInItsOrder"),
        .proven(
            "K20", "requestEndDate",
            by: "TransactionMetricsTests.tellEveryStepInItsOrder",
            "TransactionMetricsTests.letAnEarlyAndWholeAnswerEndTheRequest"),
        .proven("K21", "responseStartDate", by: "TransactionMetricsTests.tellEveryStepInItsOrder"),
        .proven("K22", "responseEndDate", by: "TransactionMetricsTests.tellEveryStepInItsOrder"),
        .proven("K23", "networkProtocolName", by: "TransactionMetricsTests.nameBothEndsTheProtocolAndTheSecurity"),
        .deviation("K24", "isProxyConnection", because: "Always false: proxies are not supported."),
        .proven(
            "K25", "isReusedConnection",
            by: "TransactionMetricsTests.haveNothingOfOpeningWhereAConnectionIsUsedAgain"),
        .proven(
            "K26", "resourceFetchType",
            by: "TransactionMetricsTests.tellWhatCameFromTheCache",
            "TransactionMetricsTests.tellWhatNeitherTheNetworkNorTheCacheGave"),
        .proven(
            "K27", "countOfRequestHeaderBytesSent",
            by: "TransactionMetricsTests.countWhatWasOnTheWireAndWhatItWasAfterDecoding"),
        .proven(
            "K28", "countOfRequestBodyBytesSent",
            by: "TransactionMetricsTests.countWhatWasOnTheWireAndWhatItWasAfterDecoding"),
        .proven(
            "K29", "countOfRequestBodyBytesBeforeEncoding",
            by: "TransactionMetricsTests.countWhatWasOnTheWireAndWhatItWasAfterDecoding"),
        .proven(
            "K30", "countOfResponseHeaderBytesReceived",
            by: "TransactionMetricsTests.countWhatWasOnTheWireAndWhatItWasAfterDecoding"),
        .proven(
            "K31", "countOfResponseBodyBytesReceived",
            by: "TransactionMetricsTests.countWhatWasOnTheWireAndWhatItWasAfterDecoding"),
        .proven(
            "K32", "countOfResponseBodyBytesAfterDecoding",
            by: "TransactionMetricsTests.countWhatWasOnTheWireAndWhatItWasAfterDecoding"),
        .proven("K33", "localAddress", by: "TransactionMetricsTests.nameBothEndsTheProtocolAndTheSecurity"),
        .proven("K34", "localPort", by: "TransactionMetricsTests.nameBothEndsTheProtocolAndTheSecurity"),
        .proven("K35", "remoteAddress", by: "TransactionMetricsTests.nameBothEndsTheProtocolAndTheSecurity"),
        .proven("K36", "remotePort", by: "TransactionMetricsTests.nameBothEndsTheProtocolAndTheSecurity"),
        .proven(
            "K37", "negotiatedTLSProtocolVersion",
            by: "TransactionMetricsTests.nameBothEndsTheProtocolAndTheSecurity"),
        .proven("K38", "negotiatedTLSCipherSuite", by: "TransactionMetricsTests.nameBothEndsTheProtocolAndTheSecurity"),
        .deviation("K39", "isCellular", because: "The kind of network is not known on Linux; always false."),
        .deviation("K40", "isExpensive", because: "The kind of network is not known on Linux; always false."),
        .deviation("K41", "isConstrained", because: "The kind of network is not known on Linux; always false."),
        .deviation("K42", "isMultipath", because: "Connections have one path; always false."),
        .deviation(
            "K43", "domainResolutionProtocol", because: "The system looks names up and does not tell how; unknown."),
    ]
}
