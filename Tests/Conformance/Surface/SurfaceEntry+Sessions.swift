extension SurfaceEntry {
    /// Sections A and B: sessions, and how they make tasks.
    static let sessions: [SurfaceEntry] = [
        .proven(
            "A1", "URLSession", by: "SessionTests.areTheirOwnCopies", "CancellationTests.byTheThousandFromOtherThreads"),
        .proven("A2", "shared", by: "SessionTests.areOneForTheProgramWhereTheyAreShared"),
        .proven("A3", "init(configuration:)", by: "SessionTests.keepTheConfigurationThatTheyWereMadeWith"),
        .proven(
            "A4", "init(configuration:delegate:delegateQueue:)",
            by: "SessionTests.makeASerialQueueWhereTheyAreGivenNone", "SessionTests.callOnTheQueueThatTheyAreGiven",
            "SessionTests.holdTheirDelegateUntilTheyAreInvalid"),
        .deviation(
            "A5", "init()",
            because: "Deprecated: it makes a session of the default configuration, and no test of ours names it."),
        .proven(
            "A6", "delegateQueue", by: "SessionTests.makeASerialQueueWhereTheyAreGivenNone",
            "SessionTests.callOnTheQueueThatTheyAreGiven"),
        .proven("A7", "delegate", by: "SessionTests.holdTheirDelegateUntilTheyAreInvalid"),
        .proven("A8", "configuration", by: "SessionTests.keepTheConfigurationThatTheyWereMadeWith"),
        .proven("A9", "sessionDescription", by: "SessionTests.haveADescriptionForTheProgramsUse"),
        .proven(
            "A10", "finishTasksAndInvalidate()", by: "SessionTests.finishWhatRunsBeforeTheyAreInvalid",
            "SessionTests.areOneForTheProgramWhereTheyAreShared"),
        .proven(
            "A11", "invalidateAndCancel()", by: "SessionTests.cancelEverythingWhenTold",
            "TaskListTests.areEmptyOnceASessionIsInvalid"),
        .proven("A12", "tasks of an invalid session", by: "SessionTests.failWhatIsMadeWhenTheyAreInvalid"),
        .proven(
            "A13", "reset(completionHandler:)", by: "SessionStoresTests.areEmptiedByAReset",
            "SessionStoresTests.doNotDisturbWhatRuns"),
        .proven("A14", "reset() async", by: "SessionStoresTests.areEmptiedByAReset"),
        .proven("A15", "flush(completionHandler:)", by: "SessionStoresTests.areKeptByAFlushButForTheConnections"),
        .proven("A16", "flush() async", by: "SessionStoresTests.areKeptByAFlushButForTheConnections"),
        .proven(
            "A17", "getTasksWithCompletionHandler(_:)", by: "TaskListTests.sortByKind",
            "TaskListTests.leaveOutWhatIsOver"),
        .proven("A18", "tasks", by: "TaskListTests.sortByKind"),
        .proven(
            "A19", "getAllTasks(completionHandler:)", by: "TaskListTests.leaveOutWhatIsOver",
            "TaskListTests.areToldByATaskThatCannotBeResumed"),
        .proven("A20", "allTasks", by: "TaskListTests.sortByKind"),
        .proven(
            "B1", "dataTask(with: request)", by: "DataTaskTests.takeACopyOfTheRequest",
            "DataTaskTests.refuseABodyOfAGET", "DataTaskTests.sendABodyFromDataOrAStream"),
        .proven("B2", "dataTask(with: url)", by: "DataTaskTests.tellADelegateWithoutHandler"),
        .proven(
            "B3", "dataTask(with: request, completionHandler:)", by: "DataTaskTests.loadByURLAndByRequest",
            "DataTaskTests.succeedWhateverTheStatus", "LyingServerTests.failTheLoad",
            "BrokenConnectionTests.leaveTheResponseWithTheHandler"),
        .proven("B4", "dataTask(with: url, completionHandler:)", by: "DataTaskTests.loadByURLAndByRequest"),
        .proven(
            "B5", "uploadTask(with:fromFile:)", by: "UploadTaskTests.sendAFile", "UploadTaskTests.failWithoutTheirFile",
            "LocalFaultTests.failAnUploadWhoseFileShrinks"),
        .proven("B6", "uploadTask(with:from:)", by: "UploadTaskTests.sendDataInPlaceOfTheRequestsBody"),
        .proven(
            "B7", "uploadTask(withStreamedRequest:)", by: "UploadTaskTests.askForTheirStream",
            "UploadTaskTests.areAskedAgainForAStreamWhereTheRequestIsRepeated"),
        .proven("B8", "uploadTask(withResumeData:)", by: "UploadTaskTests.cannotGoOnWithWhatIsNoResumeData"),
        .proven("B9", "uploadTask(with:fromFile:completionHandler:)", by: "UploadTaskTests.sendAFile"),
        .proven("B10", "uploadTask(with:from:completionHandler:)", by: "UploadTaskTests.sendAnEmptyBodyForNoData"),
        .proven(
            "B11", "uploadTask(withResumeData:completionHandler:)",
            by: "UploadTaskTests.cannotGoOnWithWhatIsNoResumeData"),
        .proven("B12", "downloadTask(with: request)", by: "DownloadTaskTests.tellADelegateWhereTheFileIsWhileItIs"),
        .proven("B13", "downloadTask(with: url)", by: "DownloadTaskTests.tellADelegateWhereTheFileIsWhileItIs"),
        .proven(
            "B14", "downloadTask(withResumeData:)", by: "ResumedDownloadTests.askForTheRestAndTellWhereItBegins",
            "ResumedDownloadTests.beginAgainWhereTheContentChanged", "ResumedDownloadTests.refuseWhatIsNoResumeData"),
        .proven(
            "B15", "downloadTask(with: request, completionHandler:)",
            by: "DownloadTaskTests.writeAFileThatIsGoneBehindTheHandler"),
        .proven(
            "B16", "downloadTask(with: url, completionHandler:)",
            by: "DownloadTaskTests.writeAFileThatIsGoneBehindTheHandler"),
        .proven(
            "B17", "downloadTask(withResumeData:completionHandler:)", by: "ResumedDownloadTests.goOnByADate",
            "ResumedDownloadTests.refuseWhatIsNoResumeData"),
        .proven(
            "B18", "streamTask(withHostName:port:)", by: "StreamTaskTests.readWhatTheirPeerWrites",
            "StreamTaskTests.doWhatWasAskedForBeforeTheyConnected"),
        .deviation(
            "B19", "streamTask(with: NetService)",
            because: "There is no Bonjour and no NetService on Linux: a stream task takes a host name and a port."),
        .proven(
            "B20", "webSocketTask(with: url)", by: "WebSocketTaskTests.sendAndReceiveInOrder",
            "WebSocketOpeningTests.isOfferedToWebSocketsAlone"),
        .proven("B21", "webSocketTask(with:protocols:)", by: "WebSocketOpeningTests.offersSubprotocolsAsAList"),
        .proven(
            "B22", "webSocketTask(with: request)",
            by: "WebSocketOpeningTests.keepsTheFieldsOfTheRequestAndOfTheSession",
            "WebSocketOpeningTests.isAGETWithoutABody", "WebSocketOpeningTests.isHeldToTheTimeoutOfTheRequest"),
    ]
}
