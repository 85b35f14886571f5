extension SurfaceEntry {
    /// Section L: challenges, protection spaces, credentials.
    static let credentials: [SurfaceEntry] = [
        .proven("L1", "URLAuthenticationChallenge", by: "URLAuthenticationChallengeTests.carryWhatTheyWereMadeWith"),
        .proven(
            "L2", "init(protectionSpace:proposedCredential:previousFailureCount:failureResponse:error:sender:)",
            by: "URLAuthenticationChallengeTests.carryWhatTheyWereMadeWith"),
        .proven(
            "L3", "init(authenticationChallenge:sender:)",
            by: "URLAuthenticationChallengeTests.carryWhatTheyWereMadeWith"),
        .proven("L4", "protectionSpace", by: "URLAuthenticationChallengeTests.carryWhatTheyWereMadeWith"),
        .proven("L5", "proposedCredential", by: "URLAuthenticationChallengeTests.carryWhatTheyWereMadeWith"),
        .proven("L6", "previousFailureCount", by: "URLAuthenticationChallengeTests.carryWhatTheyWereMadeWith"),
        .proven("L7", "failureResponse", by: "URLAuthenticationChallengeTests.carryWhatTheyWereMadeWith"),
        .proven("L8", "error", by: "URLAuthenticationChallengeTests.carryWhatTheyWereMadeWith"),
        .proven("L9", "sender", by: "URLAuthenticationChallengeTests.carryWhatTheyWereMadeWith"),
        .proven(
            "L10", "URLAuthenticationChallengeSender", by: "BasicAuthenticationTests.isAnsweredThroughTheSenderToo",
            "URLAuthenticationChallengeTests.goOnWithoutACredentialWhereTheSenderKnowsNoBetter"),
        .proven(
            "L11", "URLProtectionSpace", by: "URLProtectionSpaceTests.areEqualWhenAllPartsAre",
            "URLProtectionSpaceTests.describeThemselves", "URLProtectionSpaceTests.comeBackFromAnArchive"),
        .proven(
            "L12", "init(host:port:protocol:realm:authenticationMethod:)",
            by: "URLProtectionSpaceTests.giveBackWhatTheyWereMadeWith"),
        .proven(
            "L13", "init(proxyHost:port:type:realm:authenticationMethod:)",
            by: "URLProtectionSpaceTests.giveBackWhatTheyWereMadeWith"),
        .proven("L14", "host", by: "URLProtectionSpaceTests.giveBackWhatTheyWereMadeWith"),
        .proven("L15", "port", by: "URLProtectionSpaceTests.giveBackWhatTheyWereMadeWith"),
        .proven("L16", "protocol", by: "URLProtectionSpaceTests.giveBackWhatTheyWereMadeWith"),
        .proven("L17", "realm", by: "URLProtectionSpaceTests.giveBackWhatTheyWereMadeWith"),
        .proven("L18", "authenticationMethod", by: "URLProtectionSpaceTests.giveBackWhatTheyWereMadeWith"),
        .proven("L19", "isProxy()", by: "URLProtectionSpaceTests.giveBackWhatTheyWereMadeWith"),
        .proven("L20", "proxyType", by: "URLProtectionSpaceTests.giveBackWhatTheyWereMadeWith"),
        .proven("L21", "receivesCredentialSecurely", by: "URLProtectionSpaceTests.tellWhetherACredentialIsSafe"),
        .proven("L22", "distinguishedNames", by: "URLProtectionSpaceTests.carryOfWhomAServerAcceptsCertificates"),
        .proven(
            "L23", "serverTrust", by: "ServerTrustTests.isWhatACredentialAndASpaceCarry",
            "ServerTrustTests.tellsWhatIsWrongByTheCodeOfTheLoad",
            "ServerTrustTests.isJudgedByAnchorsOfTheProgramsOwn"),
        .proven(
            "L24", "NSURLAuthenticationMethodDefault",
            by: "URLProtectionSpaceTests.haveConstantsThatAreNamedLikeThemselves"),
        .proven(
            "L25", "NSURLAuthenticationMethodHTTPBasic",
            by: "URLProtectionSpaceTests.haveConstantsThatAreNamedLikeThemselves"),
        .proven(
            "L26", "NSURLAuthenticationMethodHTTPDigest",
            by: "URLProtectionSpaceTests.haveConstantsThatAreNamedLikeThemselves"),
        .proven(
            "L27", "NSURLAuthenticationMethodHTMLForm",
            by: "URLProtectionSpaceTests.haveConstantsThatAreNamedLikeThemselves"),
        .proven(
            "L28", "NSURLAuthenticationMethodNTLM",
            by: "URLProtectionSpaceTests.haveConstantsThatAreNamedLikeThemselves"),
        .proven(
            "L29", "NSURLAuthenticationMethodNegotiate",
            by: "URLProtectionSpaceTests.haveConstantsThatAreNamedLikeThemselves"),
        .proven(
            "L30", "NSURLAuthenticationMethodClientCertificate",
            by: "URLProtectionSpaceTests.haveConstantsThatAreNamedLikeThemselves"),
        .proven(
            "L31", "NSURLAuthenticationMethodServerTrust",
            by: "URLProtectionSpaceTests.haveConstantsThatAreNamedLikeThemselves"),
        .proven(
            "L32", "NSURLProtectionSpaceHTTP, NSURLProtectionSpaceHTTPS, NSURLProtectionSpaceFTP",
            by: "URLProtectionSpaceTests.haveConstantsThatAreNamedLikeThemselves"),
        .proven(
            "L33",
            "NSURLProtectionSpaceHTTPProxy, NSURLProtectionSpaceHTTPSProxy, NSURLProtectionSpaceFTPProxy, NSURLProtectionSpaceSOCKSProxy",
            by: "URLProtectionSpaceTests.haveConstantsThatAreNamedLikeThemselves"),
        .proven(
            "L34", "URLCredential", by: "URLCredentialTests.comeBackFromAnArchive",
            "URLCredentialTests.differWhenAnythingDiffers", "URLCredentialTests.neverTellThePassword"),
        .proven("L35", "init(user:password:persistence:)", by: "URLCredentialTests.giveBackWhatTheyWereMadeWith"),
        .proven("L36", "init(identity:certificates:persistence:)", by: "SecureLoadingTests.showsACertificateToWhoAsks"),
        .proven(
            "L37", "init(trust:)", by: "ServerTrustTests.isWhatACredentialAndASpaceCarry",
            "SecureLoadingTests.letsAnAuthorityOfTheProgramDecide"),
        .proven("L38", "identity, certificates", by: "SecureLoadingTests.showsACertificateToWhoAsks"),
        .proven("L39", "user, password, hasPassword", by: "URLCredentialTests.giveBackWhatTheyWereMadeWith"),
        .proven("L40", "persistence", by: "URLCredentialTests.giveBackWhatTheyWereMadeWith"),
        .proven("L41", "Persistence", by: "URLCredentialTests.numberTheirPersistenceAsFoundationDoes"),
        .proven(
            "L42", "URLCredentialStorage", by: "URLCredentialStorageTests.keepThePermanentOnesInAFileForItsOwnerAlone",
            "URLCredentialStorageTests.holdAgainstManyThreads"),
        .proven("L43", "shared", by: "URLCredentialStorageTests.areOneForTheProgram"),
        .proven("L44", "credentials(for:)", by: "URLCredentialStorageTests.keepCredentialsBySpaceAndUser"),
        .proven("L45", "allCredentials", by: "URLCredentialStorageTests.keepCredentialsBySpaceAndUser"),
        .proven(
            "L46", "set(_:for:)", by: "URLCredentialStorageTests.keepCredentialsBySpaceAndUser",
            "URLCredentialStorageTests.keepNothingThatIsNotToBeKept"),
        .proven("L47", "remove(_:for:)", by: "URLCredentialStorageTests.forgetADefaultWithItsCredential"),
        .proven(
            "L48", "remove(_:for:options:)", by: "URLCredentialStorageTests.takeASynchronizableOneAwayWhenToldSoAlone"),
        .proven("L49", "defaultCredential(for:)", by: "URLCredentialStorageTests.tryTheFirstUntilToldOtherwise"),
        .proven("L50", "setDefaultCredential(_:for:)", by: "URLCredentialStorageTests.tryTheFirstUntilToldOtherwise"),
        .proven("L51", "getCredentials(for:task:completionHandler:)", by: "TaskCredentialTests.setFindAndRemove"),
        .proven("L52", "credentials(for:task:)", by: "TaskCredentialTests.setFindAndRemove"),
        .proven("L53", "set(_:for:task:)", by: "TaskCredentialTests.setFindAndRemove"),
        .proven("L54", "remove(_:for:options:task:)", by: "TaskCredentialTests.setFindAndRemove"),
        .proven("L55", "getDefaultCredential(for:task:completionHandler:)", by: "TaskCredentialTests.haveADefault"),
        .proven("L56", "setDefaultCredential(_:for:task:)", by: "TaskCredentialTests.haveADefault"),
        .proven("L57", "NSURLCredentialStorageChanged", by: "URLCredentialStorageTests.tellOfChangesAlone"),
        .proven(
            "L58", "NSURLCredentialStorageRemoveSynchronizableCredentials",
            by: "URLCredentialStorageTests.takeASynchronizableOneAwayWhenToldSoAlone"),
    ]
}
