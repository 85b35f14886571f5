extension SurfaceEntry {
    /// Sections A and B: sessions, and how they make tasks.
    static let sessions: [SurfaceEntry] = [
        .proven(
            "A1", "URLSession", by: "SessionTests.sessionIsItsOwnCopy",
            "CancellationTests.thousandsOfTasksAreCancelledFromOtherThreads"),
        .proven("A2", "shared", by: "SessionTests.sharedSessionIsOneObject"),
        .proven("A3", "init(configuration:)", by: "SessionTests.sessionKeepsItsConfiguration"),
        .proven(
            "A4", "init(configuration:delegate:delegateQueue:)",
            by: "SessionTests.sessionMakesASerialDelegateQueue", "SessionTests.delegateIsCalledOnTheGivenQueue",
            "SessionTests.sessionRetainsItsDelegateUntilItIsInvalid"),
        .proven("A5", "init()", by: "FakeTests.fakeSessionMakesTheProgramsTasks"),
        .proven(
            "A6", "delegateQueue", by: "SessionTests.sessionMakesASerialDelegateQueue",
            "SessionTests.delegateIsCalledOnTheGivenQueue"),
        .proven("A7", "delegate", by: "SessionTests.sessionRetainsItsDelegateUntilItIsInvalid"),
        .proven("A8", "configuration", by: "SessionTests.sessionKeepsItsConfiguration"),
        .proven("A9", "sessionDescription", by: "SessionTests.sessionDescriptionIsKept"),
        .proven(
            "A10", "finishTasksAndInvalidate()", by: "SessionTests.finishTasksAndInvalidateWaitsForRunningTasks",
            "SessionTests.sharedSessionIsOneObject"),
        .proven(
            "A11", "invalidateAndCancel()", by: "SessionTests.invalidateAndCancelCancelsEveryTask",
            "TaskListTests.invalidSessionHasNoTasks"),
        .proven("A12", "tasks of an invalid session", by: "SessionTests.taskOfAnInvalidSessionFails"),
        .proven(
            "A13", "reset(completionHandler:)", by: "SessionStoresTests.resetEmptiesTheStores",
            "SessionStoresTests.resetKeepsRunningTasks"),
        .proven("A14", "reset() async", by: "SessionStoresTests.resetEmptiesTheStores"),
        .proven("A15", "flush(completionHandler:)", by: "SessionStoresTests.flushKeepsTheStoresAndClosesConnections"),
        .proven("A16", "flush() async", by: "SessionStoresTests.flushKeepsTheStoresAndClosesConnections"),
        .proven(
            "A17", "getTasksWithCompletionHandler(_:)", by: "TaskListTests.taskListIsSortedByKind",
            "TaskListTests.taskListOmitsCompletedTasks"),
        .proven("A18", "tasks", by: "TaskListTests.taskListIsSortedByKind"),
        .proven(
            "A19", "getAllTasks(completionHandler:)", by: "TaskListTests.taskListOmitsCompletedTasks",
            "TaskListTests.taskListOmitsInvalidTasks"),
        .proven("A20", "allTasks", by: "TaskListTests.taskListIsSortedByKind"),
        .proven(
            "B1", "dataTask(with: request)", by: "DataTaskTests.taskCopiesItsRequest",
            "DataTaskTests.bodyOfAGETIsRefused", "DataTaskTests.bodyIsSentFromDataOrAStream"),
        .proven("B2", "dataTask(with: url)", by: "DataTaskTests.taskWithoutHandlerReportsToTheDelegate"),
        .proven(
            "B3", "dataTask(with: request, completionHandler:)", by: "DataTaskTests.dataTaskLoadsByURLAndByRequest",
            "DataTaskTests.anyStatusIsASuccess", "InvalidResponseTests.invalidResponseFailsTheLoad",
            "BrokenConnectionTests.handlerGetsTheResponseOfABrokenLoad"),
        .proven("B4", "dataTask(with: url, completionHandler:)", by: "DataTaskTests.dataTaskLoadsByURLAndByRequest"),
        .proven(
            "B5", "uploadTask(with:fromFile:)", by: "UploadTaskTests.fileIsUploaded",
            "UploadTaskTests.missingFileFailsTheUpload",
            "LocalFaultTests.shrinkingFileFailsTheUpload"),
        .proven("B6", "uploadTask(with:from:)", by: "UploadTaskTests.uploadedDataReplacesTheRequestsBody"),
        .proven(
            "B7", "uploadTask(withStreamedRequest:)", by: "UploadTaskTests.delegateIsAskedForTheBodyStream",
            "UploadTaskTests.repeatedRequestRequestsTheStreamAgain"),
        .proven(
            "B8", "uploadTask(withResumeData:)", by: "ResumedUploadTests.failedUploadIsResumedByAnotherSession",
            "ResumedUploadTests.changedFileIsNotResumed", "UploadTaskTests.invalidUploadResumeDataIsRefused"),
        .proven("B9", "uploadTask(with:fromFile:completionHandler:)", by: "UploadTaskTests.fileIsUploaded"),
        .proven("B10", "uploadTask(with:from:completionHandler:)", by: "UploadTaskTests.noDataIsSentAsAnEmptyBody"),
        .proven(
            "B11", "uploadTask(withResumeData:completionHandler:)",
            by: "ResumedUploadTests.cancelledUploadIsResumedWithAHandler",
            "UploadTaskTests.invalidUploadResumeDataIsRefused"),
        .proven("B12", "downloadTask(with: request)", by: "DownloadTaskTests.delegateReceivesTheTemporaryFile"),
        .proven("B13", "downloadTask(with: url)", by: "DownloadTaskTests.delegateReceivesTheTemporaryFile"),
        .proven(
            "B14", "downloadTask(withResumeData:)",
            by: "ResumedDownloadTests.resumedDownloadRequestsTheRestAndReportsItsOffset",
            "ResumedDownloadTests.changedContentIsDownloadedFromTheStart",
            "ResumedDownloadTests.invalidResumeDataIsRefused"),
        .proven(
            "B15", "downloadTask(with: request, completionHandler:)",
            by: "DownloadTaskTests.downloadedFileIsGoneAfterTheHandler"),
        .proven(
            "B16", "downloadTask(with: url, completionHandler:)",
            by: "DownloadTaskTests.downloadedFileIsGoneAfterTheHandler"),
        .proven(
            "B17", "downloadTask(withResumeData:completionHandler:)",
            by: "ResumedDownloadTests.downloadIsResumedByADate",
            "ResumedDownloadTests.invalidResumeDataIsRefused"),
        .proven(
            "B18", "streamTask(withHostName:port:)", by: "StreamTaskTests.streamTaskReadsBytesOfItsPeer",
            "StreamTaskTests.operationsBeforeTheConnectionRunInOrder"),
        .deviation(
            "B19", "streamTask(with: NetService)",
            because: "There is no Bonjour and no NetService on Linux: a stream task takes a host name and a port."),
        .proven(
            "B20", "webSocketTask(with: url)", by: "WebSocketTaskTests.messagesAreSentAndReceivedInOrder",
            "WebSocketOpeningTests.otherSchemeIsRefused"),
        .proven("B21", "webSocketTask(with:protocols:)", by: "WebSocketOpeningTests.subprotocolsAreOfferedAsAList"),
        .proven(
            "B22", "webSocketTask(with: request)",
            by: "WebSocketOpeningTests.fieldsOfTheRequestAndOfTheSessionAreSent",
            "WebSocketOpeningTests.otherMethodOrBodyIsRefused",
            "WebSocketOpeningTests.handshakeIsHeldToTheRequestsTimeout"),
    ]
}
