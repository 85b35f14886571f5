extension SurfaceEntry {
    /// Section D: configurations of sessions.
    static let configurations: [SurfaceEntry] = [
        .proven(
            "D1", "URLSessionConfiguration", by: "URLSessionConfigurationTests.configurationIsCopiedWithEveryProperty"),
        .proven("D2", "default", by: "URLSessionConfigurationTests.configurationHasFoundationsDefaults"),
        .proven("D3", "ephemeral", by: "URLSessionConfigurationTests.ephemeralConfigurationsHaveTheirOwnStores"),
        .proven(
            "D4", "background(withIdentifier:)", by: "BackgroundSessionTests.laterSessionGetsTheMessagesThatItMissed",
            "BackgroundSessionTests.uploadSendsACopyOfItsFile",
            "BackgroundSessionTests.secondSessionOfAnIdentifierIsRefusedUntilTheFirstIsInvalid",
            "BackgroundSessionTests.redirectsAreFollowedWithoutAsking",
            "BackgroundSessionTests.lostNetworkIsTriedAgain",
            "test_background_sessions.py::test_transfers_survive_program_and_daemon",
            "test_background_sessions.py::test_daemon_may_be_killed_at_any_time",
            "BackgroundMisuseTests.otherTasksAndBodiesAreRefused", "BackgroundMisuseTests.completionHandlersAreRefused"
        ).except(
            "Needs sluice transferd. The delegate is not asked to trust a server, nor for a client certificate: the default "
                + "handling decides."),
        .deviation(
            "D5", "backgroundSessionConfiguration(_:)",
            because: "As D4, under a deprecated name that no test of ours uses."),
        .proven("D6", "init()", by: "URLSessionConfigurationTests.configurationHasFoundationsDefaults"),
        .proven("D7", "identifier", by: "URLSessionConfigurationTests.backgroundConfigurationHasItsIdentifier"),
        .proven("D8", "requestCachePolicy", by: "CacheLoadingTests.policyOfTheConfigurationIsFollowed"),
        .proven(
            "D9", "timeoutIntervalForRequest", by: "TimeoutTests.requestTimeoutEndsAnIdleTask",
            "TimeoutTests.requestsTimeoutReplacesTheSessions", "TimeoutTests.requestTimeoutCountsFromTheLastByte"),
        .proven(
            "D10", "timeoutIntervalForResource", by: "TimeoutTests.resourceTimeoutEndsAnActiveTask",
            "TimeoutTests.resourceTimeoutCoversAllAttempts"),
        .proven(
            "D11", "networkServiceType", by: "TrafficMarkTests.trafficClassesAreThoseOfRFC4594",
            "TrafficMarkTests.socketOfALoadIsMarked",
            "TrafficMarkTests.socketsOfStreamAndWebSocketTasksAreMarked"),
        .proven(
            "D12", "allowsCellularAccess", by: "ConnectivityTests.forbiddenNetworkIsTheReason",
            "PathMonitorTests.forbiddenInterfacesAreAvoided", "InterfaceClassTests.aModemIsCellularAndExpensive"),
        .proven(
            "D13", "allowsExpensiveNetworkAccess", by: "ConnectivityTests.forbiddenNetworkIsTheReason",
            "InterfaceClassTests.declaredInterfacesAreFoundByName"),
        .proven("D14", "allowsConstrainedNetworkAccess", by: "ConnectivityTests.forbiddenNetworkIsTheReason"),
        .deviation(
            "D15", "allowsUltraConstrainedNetworkAccess",
            because: "Kept, copied, and without effect: no interface is known to be of that kind on Linux."),
        .proven(
            "D16", "requiresDNSSECValidation", by: "AuthenticatedNameLoadingTests.authenticatedNameIsLoaded",
            "AuthenticatedNameLoadingTests.nameThatIsNotAuthenticatedFails",
            "AuthenticatedNameTests.anAnswerThatIsNotAuthenticatedIsRefused"),
        .proven(
            "D17", "waitsForConnectivity", by: "ConnectivityTests.waitingTaskConnectsWhenARouteAppears",
            "ConnectivityTests.lostConnectionIsNotWaitedAfter", "ConnectivityTests.resourceTimeoutEndsTheWait"),
        .proven(
            "D18", "isDiscretionary", by: "TransferScheduleTests.discretionaryTransferWaitsForTheMachine",
            "URLSessionConfigurationTests.configurationIsCopiedWithEveryProperty"),
        .deviation("D19", "sharedContainerIdentifier", because: "Kept, copied, and without effect on Linux."),
        .proven(
            "D20", "sessionSendsLaunchEvents",
            by: "test_background_sessions.py::test_program_is_started_for_the_events_of_its_session",
            "LaunchPolicyTests.programIsStartedWhenAllItsTransfersAreOver",
            "LaunchPolicyTests.programIsNotStartedAgainstItsWill",
            "URLSessionConfigurationTests.configurationIsCopiedWithEveryProperty"),
        .proven(
            "D21", "connectionProxyDictionary", by: "ProxyLoadingTests.requestIsForwardedInAbsoluteForm",
            "ProxySettingsTests.dictionaryNamesTheProxyOfAScheme",
            "ProxySettingsTests.environmentNamesTheProxyOfAScheme"),
        .proven(
            "D22", "proxyConfigurations", by: "ProxyConfigurationTests.nextProxyIsTakenWhenOneCannotBeReached"),
        .proven(
            "D23", "tlsMinimumSupportedProtocol",
            by: "URLSessionConfigurationTests.olderTLSPropertiesNameTheSameVersions"),
        .proven(
            "D24", "tlsMaximumSupportedProtocol",
            by: "URLSessionConfigurationTests.olderTLSPropertiesNameTheSameVersions"),
        .proven(
            "D25", "tlsMinimumSupportedProtocolVersion", by: "SecureLoadingTests.versionsOfTheConfigurationAreKept"),
        .proven(
            "D26", "tlsMaximumSupportedProtocolVersion", by: "SecureLoadingTests.versionsOfTheConfigurationAreKept"),
        .proven(
            "D27", "httpShouldUsePipelining",
            by: "PipeliningLoadingTests.requestsOfASessionOrByThemselvesArePipelined"),
        .proven(
            "D28", "httpShouldSetCookies", by: "CookieLoadingTests.cookieIsNotSentWhereItIsForbidden"
        ),
        .proven(
            "D29", "httpCookieAcceptPolicy", by: "CookieLoadingTests.cookieIsNotKeptWhereThePolicyForbidsIt",
            "CookieLoadingTests.cookieForAnotherMainDocumentIsNotKept"),
        .proven(
            "D30", "httpAdditionalHeaders", by: "RequestFieldTests.requestsFieldsGoBeforeTheSessions",
            "LocalFaultTests.reservedFieldsOfARequestAreIgnored",
            "BasicAuthenticationTests.basicCredentialOfTheSessionIsSent",
            "BasicAuthenticationTests.credentialOfAFieldYieldsToAChallengesAnswer"),
        .proven(
            "D31", "httpMaximumConnectionsPerHost",
            by: "ConnectionUseTests.connectionsAreNoMoreThanTheConfigurationAllows"),
        .proven(
            "D32", "httpCookieStorage", by: "CookieLoadingTests.cookieIsKeptAndSentBack",
            "SessionStoresTests.sessionWithoutStoresSendsNoCookies"),
        .proven(
            "D33", "urlCredentialStorage", by: "BasicAuthenticationTests.defaultCredentialOfTheStorageIsTaken",
            "SessionStoresTests.sessionWithoutStoresSendsNoCookies"),
        .proven(
            "D34", "urlCache", by: "CacheLoadingTests.freshResponseIsAnsweredFromTheCache",
            "SessionStoresTests.sessionWithoutStoresSendsNoCookies"),
        .deviation("D35", "shouldUseExtendedBackgroundIdleMode", because: "Kept, copied, and without effect on Linux."),
        .proven("D36", "protocolClasses", by: "ProtocolClassTests.protocolsAreAskedInOrderBeforeTheSessionsOwn"),
        .proven(
            "D37", "multipathServiceType", by: "MultipathTests.multipathIsUsedWhereTheServerHasIt",
            "MultipathTests.plainTCPIsUsedWithOtherServers"),
        .proven(
            "D38", "MultipathServiceType", by: "URLSessionConfigurationTests.configurationEnumsHaveFoundationsRawValues"
        ),
        .deviation("D39", "usesClassicLoadingMode", because: "Kept, copied, and without effect on Linux."),
        .proven(
            "D40", "enablesEarlyData", by: "EarlyDataLoadingTests.safeRequestIsSentAsEarlyData",
            "EarlyDataLoadingTests.rejectedRequestIsSentBehindTheHandshake",
            "EarlyDataLoadingTests.requestThatIsTooEarlyIsRepeated"),
    ]
}
