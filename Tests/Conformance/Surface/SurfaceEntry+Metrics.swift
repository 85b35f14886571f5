extension SurfaceEntry {
    /// Section K: metrics.
    static let metrics: [SurfaceEntry] = [
        .proven("K1", "URLSessionTaskMetrics", by: "TaskMetricsTests.transactionsAreKeptInOrder"),
        .proven("K2", "transactionMetrics", by: "TaskMetricsTests.transactionsAreKeptInOrder"),
        .proven("K3", "taskInterval", by: "TaskMetricsTests.transactionsAreKeptInOrder"),
        .proven("K4", "redirectCount", by: "TaskMetricsTests.transactionsAreKeptInOrder"),
        .proven("K5", "ResourceFetchType", by: "TaskMetricsTests.metricsEnumsHaveFoundationsRawValues"),
        .proven("K6", "DomainResolutionProtocol", by: "TaskMetricsTests.metricsEnumsHaveFoundationsRawValues"),
        .proven(
            "K7", "URLSessionTaskTransactionMetrics",
            by: "TransactionMetricsTests.metricsEndWithTheStepThatFailed",
            "TransactionMetricsTests.metricsEndWithTheBrokenResponse"),
        .proven(
            "K8", "tls_protocol_version_t",
            by: "URLSessionConfigurationTests.configurationEnumsHaveFoundationsRawValues"),
        .proven(
            "K9", "tls_ciphersuite_t",
            by: "TaskMetricsTests.metricsEnumsHaveFoundationsRawValues",
            "TransactionMetricsTests.cipherSuiteWithoutANameIsNil"),
        .proven("K10", "request", by: "TransactionMetricsTests.datesOfATransactionAreInOrder"),
        .proven("K11", "response", by: "TransactionMetricsTests.datesOfATransactionAreInOrder"),
        .proven("K12", "fetchStartDate", by: "TransactionMetricsTests.datesOfATransactionAreInOrder"),
        .proven(
            "K13", "domainLookupStartDate",
            by: "TransactionMetricsTests.datesOfATransactionAreInOrder",
            "TransactionMetricsTests.addressHasNoLookupDates"),
        .proven("K14", "domainLookupEndDate", by: "TransactionMetricsTests.datesOfATransactionAreInOrder"),
        .proven(
            "K15", "connectStartDate",
            by: "TransactionMetricsTests.datesOfATransactionAreInOrder",
            "TransactionMetricsTests.reusedConnectionHasNoOpeningDates"),
        .proven(
            "K16", "secureConnectionStartDate",
            by: "TransactionMetricsTests.datesOfATransactionAreInOrder",
            "TransactionMetricsTests.plainConnectionHasNoSecurityDates"),
        .proven("K17", "secureConnectionEndDate", by: "TransactionMetricsTests.datesOfATransactionAreInOrder"),
        .proven("K18", "connectEndDate", by: "TransactionMetricsTests.datesOfATransactionAreInOrder"),
        .proven("K19", "requestStartDate", by: "TransactionMetricsTests.datesOfATransactionAreInOrder"),
        .proven(
            "K20", "requestEndDate",
            by: "TransactionMetricsTests.datesOfATransactionAreInOrder",
            "TransactionMetricsTests.earlyCompleteResponseEndsTheRequest"),
        .proven("K21", "responseStartDate", by: "TransactionMetricsTests.datesOfATransactionAreInOrder"),
        .proven("K22", "responseEndDate", by: "TransactionMetricsTests.datesOfATransactionAreInOrder"),
        .proven(
            "K23", "networkProtocolName", by: "TransactionMetricsTests.metricsNameBothEndsTheProtocolAndTheSecurity"),
        .proven(
            "K24", "isProxyConnection", by: "ProxyLoadingTests.requestIsForwardedInAbsoluteForm",
            "ProxyMetricsTests.webSocketThroughAProxySaysSo"),
        .proven(
            "K25", "isReusedConnection",
            by: "TransactionMetricsTests.reusedConnectionHasNoOpeningDates"),
        .proven(
            "K26", "resourceFetchType",
            by: "TransactionMetricsTests.cachedResponseHasFetchTypeLocalCache",
            "TransactionMetricsTests.otherResponseHasFetchTypeUnknown"),
        .proven(
            "K27", "countOfRequestHeaderBytesSent",
            by: "TransactionMetricsTests.bytesAreCountedBeforeAndAfterDecoding"),
        .proven(
            "K28", "countOfRequestBodyBytesSent",
            by: "TransactionMetricsTests.bytesAreCountedBeforeAndAfterDecoding"),
        .proven(
            "K29", "countOfRequestBodyBytesBeforeEncoding",
            by: "TransactionMetricsTests.bytesAreCountedBeforeAndAfterDecoding"),
        .proven(
            "K30", "countOfResponseHeaderBytesReceived",
            by: "TransactionMetricsTests.bytesAreCountedBeforeAndAfterDecoding"),
        .proven(
            "K31", "countOfResponseBodyBytesReceived",
            by: "TransactionMetricsTests.bytesAreCountedBeforeAndAfterDecoding"),
        .proven(
            "K32", "countOfResponseBodyBytesAfterDecoding",
            by: "TransactionMetricsTests.bytesAreCountedBeforeAndAfterDecoding"),
        .proven("K33", "localAddress", by: "TransactionMetricsTests.metricsNameBothEndsTheProtocolAndTheSecurity"),
        .proven("K34", "localPort", by: "TransactionMetricsTests.metricsNameBothEndsTheProtocolAndTheSecurity"),
        .proven("K35", "remoteAddress", by: "TransactionMetricsTests.metricsNameBothEndsTheProtocolAndTheSecurity"),
        .proven("K36", "remotePort", by: "TransactionMetricsTests.metricsNameBothEndsTheProtocolAndTheSecurity"),
        .proven(
            "K37", "negotiatedTLSProtocolVersion",
            by: "TransactionMetricsTests.metricsNameBothEndsTheProtocolAndTheSecurity"),
        .proven(
            "K38", "negotiatedTLSCipherSuite",
            by: "TransactionMetricsTests.metricsNameBothEndsTheProtocolAndTheSecurity"),
        .proven("K39", "isCellular", by: "ConnectivityTests.stricterSettingOfARequestCounts"),
        .proven("K40", "isExpensive", by: "ConnectivityTests.stricterSettingOfARequestCounts"),
        .proven("K41", "isConstrained", by: "ConnectivityTests.stricterSettingOfARequestCounts"),
        .proven("K42", "isMultipath", by: "MultipathTests.multipathIsUsedWhereTheServerHasIt"),
        .deviation(
            "K43", "domainResolutionProtocol", because: "The system looks names up and does not tell how; unknown."),
    ]
}
