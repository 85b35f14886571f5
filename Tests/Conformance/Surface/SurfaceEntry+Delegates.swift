extension SurfaceEntry {
    /// Section I: delegates.
    static let delegates: [SurfaceEntry] = [
        .proven(
            "I1", "URLSessionDelegate", by: "ChallengeDispatchTests.isTheSessionForTheServersTrust",
            "AsWrittenForFoundationTests.delegateMethodsHaveFoundationsNames"),
        .proven(
            "I2", "didBecomeInvalidWithError", by: "SessionTests.finishTasksAndInvalidateWaitsForRunningTasks",
            "SessionTests.sessionRetainsItsDelegateUntilItIsInvalid"),
        .proven(
            "I3", "didReceive challenge of the session", by: "ChallengeDispatchTests.isTheSessionForTheServersTrust",
            "ChallengeDispatchTests.isNeverTheSessionForAPassword"),
        .proven("I4", "didReceive challenge of the session, async", by: "AsyncDelegateTests.answerInPlaceOfHandlers"),
        .deviation(
            "I5", "urlSessionDidFinishEvents",
            because: "Never called: background sessions are not supported."),
        .proven(
            "I6", "URLSessionTaskDelegate", by: "TaskDelegateTests.areAskedBeforeTheSessions",
            "TaskDelegateTests.taskDelegateMayImplementNoMethod"),
        .proven("I7", "didCreateTask", by: "MessageOrderTests.didCreateTaskIsCalledFirst"),
        .deviation(
            "I8", "willBeginDelayedRequest", because: "Never called: background sessions are not supported."),
        .deviation(
            "I9", "willBeginDelayedRequest, async",
            because: "Never called: background sessions are not supported."),
        .deviation(
            "I10", "taskIsWaitingForConnectivity", because: "Never called: tasks do not wait for connectivity."),
        .proven(
            "I11", "willPerformHTTPRedirection", by: "MessageOrderTests.hasTheRedirectFirst",
            "MessageOrderTests.doesNotFollow300", "RedirectTests.changeAPostIntoAGetWithoutItsBody",
            "RedirectTests.takeMethodAndBodyAlong", "RedirectTests.endAfterTwenty",
            "RedirectTests.keepSecretsFromOtherServers"),
        .proven("I12", "willPerformHTTPRedirection, async", by: "AsyncDelegateTests.answerInPlaceOfHandlers"),
        .proven(
            "I13", "didReceive challenge of a task", by: "BasicAuthenticationTests.answersAChallenge",
            "ChallengeDispatchTests.isTheTaskForAPassword",
            "ChallengeDispatchTests.taskDelegateHandlesServerTrustWithoutASessionMethod"),
        .proven("I14", "didReceive challenge of a task, async", by: "AsyncDelegateTests.answerInPlaceOfHandlers"),
        .proven(
            "I15", "needNewBodyStream", by: "UploadTaskTests.askForTheirStream",
            "UploadTaskTests.failWithoutTheirStream", "MessageOrderTests.asksForTheBodyAgainBehindAChallenge"),
        .proven("I16", "needNewBodyStreamForTask", by: "AsyncDelegateTests.answerInPlaceOfHandlers"),
        .deviation(
            "I17", "needNewBodyStreamFrom", because: "Never called: resumable uploads are not supported."),
        .deviation(
            "I18", "needNewBodyStreamForTask from",
            because: "Never called: resumable uploads are not supported."),
        .proven(
            "I19", "didSendBodyData", by: "UploadTaskTests.sendDataInPlaceOfTheRequestsBody",
            "MessageOrderTests.hasTheBodyBeforeTheResponse"),
        .proven("I20", "didReceiveInformationalResponse", by: "MessageOrderTests.hasInformationBeforeTheResponse"),
        .proven(
            "I21", "didFinishCollecting metrics", by: "MessageOrderTests.isThatOfAPlainLoad",
            "MessageOrderTests.isThatOfAFailure"),
        .proven(
            "I22", "didCompleteWithError", by: "BrokenConnectionTests.brokenConnectionIsReportedOnceAndLast",
            "DataTaskTests.useTheHandlerAloneForTheResult"),
        .proven("I23", "URLSessionDataDelegate", by: "MessageOrderTests.isThatOfAPlainLoad"),
        .proven(
            "I24", "didReceive response", by: "ResponseDispositionTests.isKeptBackUntilTheAnswer",
            "ResponseDispositionTests.isTheEndWhereItIsCancelled",
            "ResponseDispositionTests.comesAgainForEachPartOfAMixedContent"),
        .proven("I25", "didReceive response, async", by: "AsyncDelegateTests.decideOverTheResponse"),
        .proven("I26", "didBecome downloadTask", by: "ResponseDispositionTests.canBeAFile"),
        .proven(
            "I27", "didBecome streamTask", by: "BecomingStreamTests.goOnWithTheConnectionThatTheServerUpgraded",
            "ResponseDispositionTests.canBeAStreamBehindAnUpgrade"),
        .proven(
            "I28", "didReceive data", by: "MessageOrderTests.isThatOfAPlainLoad",
            "ProtocolClassTests.giveADelegateEachPieceAsItIs"),
        .proven(
            "I29", "willCacheResponse", by: "CacheLoadingTests.delegateDecidesAboutCaching",
            "CacheLoadingTests.delegateIsAskedForStorableResponsesOnly"),
        .proven("I30", "willCacheResponse, async", by: "AsyncDelegateTests.decideOverTheCache"),
        .proven("I31", "URLSessionDownloadDelegate", by: "DownloadTaskTests.delegateReceivesTheTemporaryFile"),
        .proven(
            "I32", "didFinishDownloadingTo", by: "DownloadTaskTests.letTheProgramTakeTheFile",
            "DownloadTaskTests.takeTheBodyOfARefusalForTheContent"),
        .proven(
            "I33", "didWriteData", by: "DownloadTaskTests.delegateReceivesTheTemporaryFile",
            "DownloadTaskTests.downloadCountsDecodedBytes"),
        .proven(
            "I34", "didResumeAtOffset", by: "ResumedDownloadTests.resumedDownloadRequestsTheRestAndReportsItsOffset"),
    ]
}
