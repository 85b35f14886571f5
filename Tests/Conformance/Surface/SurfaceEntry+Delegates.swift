extension SurfaceEntry {
    /// Section I: delegates.
    static let delegates: [SurfaceEntry] = [
        .proven(
            "I1", "URLSessionDelegate", by: "ChallengeDispatchTests.sessionIsAskedAboutTheServersTrust",
            "AsWrittenForFoundationTests.delegateMethodsHaveFoundationsNames"),
        .proven(
            "I2", "didBecomeInvalidWithError", by: "SessionTests.finishTasksAndInvalidateWaitsForRunningTasks",
            "SessionTests.sessionRetainsItsDelegateUntilItIsInvalid"),
        .proven(
            "I3", "didReceive challenge of the session",
            by: "ChallengeDispatchTests.sessionIsAskedAboutTheServersTrust",
            "ConnectionAuthenticationTests.connectionIsAuthenticatedOnce",
            "ChallengeDispatchTests.sessionIsNeverAskedForAPassword"),
        .proven(
            "I4", "didReceive challenge of the session, async",
            by: "AsyncDelegateTests.asyncDelegateAnswersInPlaceOfHandlers"),
        .proven(
            "I5", "urlSessionDidFinishEvents", by: "BackgroundSessionTests.laterSessionGetsTheMessagesThatItMissed"),
        .proven(
            "I6", "URLSessionTaskDelegate", by: "TaskDelegateTests.taskDelegateIsAskedBeforeTheSessions",
            "TaskDelegateTests.taskDelegateMayImplementNoMethod"),
        .proven("I7", "didCreateTask", by: "MessageOrderTests.didCreateTaskIsCalledFirst"),
        .proven(
            "I8", "willBeginDelayedRequest",
            by: "BackgroundSessionTests.delayedRequestIsContinuedReplacedOrCancelled"),
        .proven(
            "I9", "willBeginDelayedRequest, async",
            by: "BackgroundSessionTests.delayedRequestIsReplacedAsynchronously"),
        .proven(
            "I10", "taskIsWaitingForConnectivity", by: "ConnectivityTests.waitingTaskConnectsWhenARouteAppears",
            "ConnectivityTests.waitingTasksOfAllKindsConnect"),
        .proven(
            "I11", "willPerformHTTPRedirection", by: "MessageOrderTests.redirectComesFirst",
            "MessageOrderTests.status300IsNotFollowed", "RedirectTests.changeAPostIntoAGetWithoutItsBody",
            "RedirectTests.redirectKeepsMethodAndBody", "RedirectTests.redirectsEndAfterTwenty",
            "RedirectTests.secretsAreNotSentToAnotherServer"),
        .proven(
            "I12", "willPerformHTTPRedirection, async", by: "AsyncDelegateTests.asyncDelegateAnswersInPlaceOfHandlers"),
        .proven(
            "I13", "didReceive challenge of a task", by: "BasicAuthenticationTests.challengeIsAnswered",
            "ChallengeDispatchTests.taskIsAskedForAPassword",
            "ChallengeDispatchTests.taskDelegateHandlesServerTrustWithoutASessionMethod"),
        .proven(
            "I14", "didReceive challenge of a task, async",
            by: "AsyncDelegateTests.asyncDelegateAnswersInPlaceOfHandlers"),
        .proven(
            "I15", "needNewBodyStream", by: "UploadTaskTests.delegateIsAskedForTheBodyStream",
            "UploadTaskTests.missingStreamFailsTheUpload", "MessageOrderTests.bodyIsAskedForAgainAfterAChallenge"),
        .proven("I16", "needNewBodyStreamForTask", by: "AsyncDelegateTests.asyncDelegateAnswersInPlaceOfHandlers"),
        .proven(
            "I17", "needNewBodyStreamFrom", by: "ContinuedUploadTests.delegateSuppliesTheRestOfAStream",
            "ContinuedUploadTests.streamWithoutARestFailsTheUpload"),
        .proven(
            "I18", "needNewBodyStreamForTask from",
            by: "ContinuedUploadTests.asyncDelegateSuppliesTheRestOfAStream"),
        .proven(
            "I19", "didSendBodyData", by: "UploadTaskTests.uploadedDataReplacesTheRequestsBody",
            "MessageOrderTests.bodyIsSentBeforeTheResponse"),
        .proven(
            "I20", "didReceiveInformationalResponse",
            by: "MessageOrderTests.informationalResponseComesBeforeTheFinalOne",
            "ContinuedUploadTests.countsOfAContinuedUploadAreThoseOfItsContent"),
        .proven(
            "I21", "didFinishCollecting metrics", by: "MessageOrderTests.plainLoadHasItsOrder",
            "MessageOrderTests.failureHasItsOrder"),
        .proven(
            "I22", "didCompleteWithError", by: "BrokenConnectionTests.brokenConnectionIsReportedOnceAndLast",
            "DataTaskTests.onlyTheHandlerReceivesTheResult"),
        .proven("I23", "URLSessionDataDelegate", by: "MessageOrderTests.plainLoadHasItsOrder"),
        .proven(
            "I24", "didReceive response", by: "ResponseDispositionTests.contentWaitsForTheDelegatesAnswer",
            "ResponseDispositionTests.cancelledResponseIsTheEnd",
            "ResponseDispositionTests.eachPartOfMixedContentHasAResponse"),
        .proven("I25", "didReceive response, async", by: "AsyncDelegateTests.delegateDecidesAboutTheResponse"),
        .proven("I26", "didBecome downloadTask", by: "ResponseDispositionTests.responseCanBecomeADownload"),
        .proven(
            "I27", "didBecome streamTask", by: "BecomingStreamTests.streamContinuesOnTheUpgradedConnection",
            "ResponseDispositionTests.responseAfterAnUpgradeCanBecomeAStream",
            "BecomingStreamTests.streamGetsContentAsItIsOnTheWire",
            "BecomingStreamTests.streamOfAPipelinedRequestReadsOnly"),
        .proven(
            "I28", "didReceive data", by: "MessageOrderTests.plainLoadHasItsOrder",
            "ProtocolClassTests.delegateGetsEachPieceAsItIs"),
        .proven(
            "I29", "willCacheResponse", by: "CacheLoadingTests.delegateDecidesAboutCaching",
            "CacheLoadingTests.delegateIsAskedForStorableResponsesOnly"),
        .proven("I30", "willCacheResponse, async", by: "AsyncDelegateTests.delegateDecidesAboutTheCache"),
        .proven("I31", "URLSessionDownloadDelegate", by: "DownloadTaskTests.delegateReceivesTheTemporaryFile"),
        .proven(
            "I32", "didFinishDownloadingTo", by: "DownloadTaskTests.programMayMoveTheFile",
            "DownloadTaskTests.bodyOfARefusalIsDownloaded"),
        .proven(
            "I33", "didWriteData", by: "DownloadTaskTests.delegateReceivesTheTemporaryFile",
            "DownloadTaskTests.downloadCountsDecodedBytes"),
        .proven(
            "I34", "didResumeAtOffset", by: "ResumedDownloadTests.resumedDownloadRequestsTheRestAndReportsItsOffset"),
    ]
}
