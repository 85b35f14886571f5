extension SurfaceEntry {
    /// Sections E and F: tasks.
    static let tasks: [SurfaceEntry] = [
        .proven(
            "E1", "URLSessionTask", by: "DataTaskTests.areOneWithTheirCopies",
            "SessionTests.sessionLivesWhileItsTasksRun"),
        .deviation("E2", "init()", because: "Deprecated: it makes a task that is over, and no test of ours names it."),
        .proven(
            "E3", "taskIdentifier", by: "TaskListTests.taskIdentifiersStartAtOne", "ResponseDispositionTests.canBeAFile"
        ),
        .proven(
            "E4", "originalRequest", by: "DataTaskTests.takeACopyOfTheRequest",
            "TaskStateTests.currentRequestIsTheRedirectedOne"),
        .proven("E5", "currentRequest", by: "TaskStateTests.currentRequestIsTheRedirectedOne"),
        .proven("E6", "response", by: "TaskStateTests.responseIsSetBeforeTheDelegateIsCalled"),
        .proven(
            "E7", "delegate", by: "TaskDelegateTests.areAskedBeforeTheSessions", "TaskDelegateTests.areHeldUntilTheEnd",
            "TaskDelegateTests.areNotTakenOnceTheTaskRuns"),
        .proven(
            "E8", "progress", by: "TaskCountTests.finishTheirProgress", "TaskCountTests.obeyTheirProgress",
            "TaskCountTests.cancelWithTheProgressThatTheyArePartOf"),
        .proven("E9", "earliestBeginDate", by: "TaskStateTests.taskKeepsDescriptionAndHints"),
        .proven("E10", "countOfBytesClientExpectsToSend", by: "TaskStateTests.taskKeepsDescriptionAndHints"),
        .proven("E11", "countOfBytesClientExpectsToReceive", by: "TaskStateTests.taskKeepsDescriptionAndHints"),
        .proven(
            "E12", "countOfBytesSent", by: "TaskCountTests.areRightAtEveryCallback",
            "TaskCountTests.areThereWithoutADelegate"),
        .proven(
            "E13", "countOfBytesReceived", by: "TaskCountTests.areRightAtEveryCallback",
            "TaskCountTests.areThereWithoutADelegate"),
        .proven(
            "E14", "countOfBytesExpectedToSend", by: "UploadTaskTests.sendDataInPlaceOfTheRequestsBody",
            "UploadTaskTests.askForTheirStream", "TaskCountTests.haveNothingToSendWithoutABody"),
        .proven(
            "E15", "countOfBytesExpectedToReceive", by: "TaskCountTests.areRightAtEveryCallback",
            "TaskCountTests.expectNothingKnownOfACodedContent"),
        .proven("E16", "taskDescription", by: "TaskStateTests.taskKeepsDescriptionAndHints"),
        .proven(
            "E17", "state", by: "TaskStateTests.taskGoesFromSuspendedToRunningToCompleted",
            "DataTaskTests.taskWithoutHandlerReportsToTheDelegate"),
        .proven(
            "E18", "State", by: "TaskStateTests.numberTheirValuesAsFoundationDoes",
            "TimeoutTests.timeoutsPauseWhileATaskIsSuspended"),
        .proven(
            "E19", "error", by: "TaskStateTests.endOnceWhenCancelled", "TaskStateTests.cannotBeCancelledWhenTheyAreOver"
        ),
        .proven(
            "E20", "cancel()", by: "TaskStateTests.endOnceWhenCancelled",
            "TaskStateTests.endWhenCancelledBeforeTheyBegan", "CancellationTests.endOnceWhereverTheyAre"),
        .proven(
            "E21", "suspend()", by: "TaskStateTests.countSuspensionsAgainstResumptions",
            "TaskStateTests.holdBackTheRestWhileSuspended"),
        .proven(
            "E22", "resume()", by: "TaskStateTests.countSuspensionsAgainstResumptions",
            "TaskListTests.taskListOmitsInvalidTasks"),
        .proven("E23", "priority", by: "ConnectionUseTests.goToTheHighestPriorityFirst"),
        .proven("E24", "defaultPriority", by: "TaskStateTests.numberTheirValuesAsFoundationDoes"),
        .proven("E25", "lowPriority", by: "TaskStateTests.numberTheirValuesAsFoundationDoes"),
        .proven("E26", "highPriority", by: "TaskStateTests.numberTheirValuesAsFoundationDoes"),
        .proven("E27", "prefersIncrementalDelivery", by: "TaskStateTests.taskKeepsDescriptionAndHints"),
        .proven("F1", "URLSessionDataTask", by: "DataTaskTests.loadByURLAndByRequest"),
        .proven(
            "F2", "URLSessionUploadTask", by: "UploadTaskTests.sendDataInPlaceOfTheRequestsBody",
            "TaskListTests.taskListIsSortedByKind"),
        .proven(
            "F3", "cancel(byProducingResumeData:) of uploads",
            by: "UploadTaskTests.giveNoResumeDataWhereTheServerKnowsNothingOfIt"),
        .proven(
            "F4", "cancelByProducingResumeData() of uploads",
            by: "UploadTaskTests.giveNoResumeDataWhereTheServerKnowsNothingOfIt"),
        .proven(
            "F5", "URLSessionDownloadTask", by: "DownloadTaskTests.delegateReceivesTheTemporaryFile",
            "DownloadTaskTests.leaveNoFileBehindAFailure"),
        .proven(
            "F6", "cancel(byProducingResumeData:)",
            by: "ResumedDownloadTests.resumedDownloadRequestsTheRestAndReportsItsOffset",
            "ResumedDownloadTests.cannotWhereTheServerGivesNothingToGoOnBy"),
        .proven(
            "F7", "cancelByProducingResumeData()", by: "ResumedDownloadTests.resumeDataIsMadeOnceAndOnlyAfterTheStart"),
        .deviation(
            "F8", "init() of the three",
            because: "Deprecated and inherited: they make tasks that are over, and no test of ours names them."),
    ]
}
