extension SurfaceEntry {
    /// Sections E and F: tasks.
    static let tasks: [SurfaceEntry] = [
        .proven(
            "E1", "URLSessionTask", by: "DataTaskTests.taskIsOneWithItsCopies",
            "SessionTests.sessionLivesWhileItsTasksRun"),
        .deviation("E2", "init()", because: "Deprecated: it makes a task that is over, and no test of ours names it."),
        .proven(
            "E3", "taskIdentifier", by: "TaskListTests.taskIdentifiersStartAtOne",
            "ResponseDispositionTests.responseCanBecomeADownload"
        ),
        .proven(
            "E4", "originalRequest", by: "DataTaskTests.taskCopiesItsRequest",
            "TaskStateTests.currentRequestIsTheRedirectedOne"),
        .proven("E5", "currentRequest", by: "TaskStateTests.currentRequestIsTheRedirectedOne"),
        .proven("E6", "response", by: "TaskStateTests.responseIsSetBeforeTheDelegateIsCalled"),
        .proven(
            "E7", "delegate", by: "TaskDelegateTests.taskDelegateIsAskedBeforeTheSessions",
            "TaskDelegateTests.taskDelegateIsHeldUntilTheEnd",
            "TaskDelegateTests.taskDelegateIsNotTakenOnceTheTaskRuns"),
        .proven(
            "E8", "progress", by: "TaskCountTests.completedTaskFinishesItsProgress",
            "TaskCountTests.progressControlsItsTask",
            "TaskCountTests.cancelledParentProgressCancelsTheTask"),
        .proven(
            "E9", "earliestBeginDate", by: "TaskStateTests.taskKeepsDescriptionAndHints",
            "BackgroundSessionTests.delayedRequestIsContinuedReplacedOrCancelled"),
        .proven("E10", "countOfBytesClientExpectsToSend", by: "TaskStateTests.taskKeepsDescriptionAndHints"),
        .proven("E11", "countOfBytesClientExpectsToReceive", by: "TaskStateTests.taskKeepsDescriptionAndHints"),
        .proven(
            "E12", "countOfBytesSent", by: "TaskCountTests.countsAreRightAtEveryCallback",
            "TaskCountTests.countsExistWithoutADelegate"),
        .proven(
            "E13", "countOfBytesReceived", by: "TaskCountTests.countsAreRightAtEveryCallback",
            "TaskCountTests.countsExistWithoutADelegate"),
        .proven(
            "E14", "countOfBytesExpectedToSend", by: "UploadTaskTests.uploadedDataReplacesTheRequestsBody",
            "UploadTaskTests.delegateIsAskedForTheBodyStream", "TaskCountTests.taskWithoutABodyExpectsToSendNothing"),
        .proven(
            "E15", "countOfBytesExpectedToReceive", by: "TaskCountTests.countsAreRightAtEveryCallback",
            "TaskCountTests.expectedBytesOfACodedContentAreUnknown"),
        .proven("E16", "taskDescription", by: "TaskStateTests.taskKeepsDescriptionAndHints"),
        .proven(
            "E17", "state", by: "TaskStateTests.taskGoesFromSuspendedToRunningToCompleted",
            "DataTaskTests.taskWithoutHandlerReportsToTheDelegate"),
        .proven(
            "E18", "State", by: "TaskStateTests.taskStatesHaveFoundationsRawValues",
            "TimeoutTests.timeoutsPauseWhileATaskIsSuspended"),
        .proven(
            "E19", "error", by: "TaskStateTests.cancelledTaskEndsOnce", "TaskStateTests.completedTaskCannotBeCancelled"
        ),
        .proven(
            "E20", "cancel()", by: "TaskStateTests.cancelledTaskEndsOnce",
            "TaskStateTests.taskCancelledBeforeItBeginsEnds", "CancellationTests.cancelledTaskEndsOnceAnywhere"),
        .proven(
            "E21", "suspend()", by: "TaskStateTests.suspensionsAreCountedAgainstResumptions",
            "TaskStateTests.suspendedTaskReceivesNothingFurther"),
        .proven(
            "E22", "resume()", by: "TaskStateTests.suspensionsAreCountedAgainstResumptions",
            "TaskListTests.taskListOmitsInvalidTasks"),
        .proven("E23", "priority", by: "ConnectionUseTests.highestPriorityGoesFirst"),
        .proven("E24", "defaultPriority", by: "TaskStateTests.taskStatesHaveFoundationsRawValues"),
        .proven("E25", "lowPriority", by: "TaskStateTests.taskStatesHaveFoundationsRawValues"),
        .proven("E26", "highPriority", by: "TaskStateTests.taskStatesHaveFoundationsRawValues"),
        .proven("E27", "prefersIncrementalDelivery", by: "TaskStateTests.taskKeepsDescriptionAndHints"),
        .proven("F1", "URLSessionDataTask", by: "DataTaskTests.dataTaskLoadsByURLAndByRequest"),
        .proven(
            "F2", "URLSessionUploadTask", by: "UploadTaskTests.uploadedDataReplacesTheRequestsBody",
            "TaskListTests.taskListIsSortedByKind"),
        .proven(
            "F3", "cancel(byProducingResumeData:) of uploads",
            by: "UploadCutPointTests.cancelledPauseGivesResumeData",
            "UploadTaskTests.serverWithoutResumptionGivesNoResumeData"),
        .proven(
            "F4", "cancelByProducingResumeData() of uploads",
            by: "ResumedUploadTests.cancelledUploadIsResumedWithAHandler",
            "UploadTaskTests.serverWithoutResumptionGivesNoResumeData"),
        .proven(
            "F5", "URLSessionDownloadTask", by: "DownloadTaskTests.delegateReceivesTheTemporaryFile",
            "DownloadTaskTests.failureLeavesNoFile"),
        .proven(
            "F6", "cancel(byProducingResumeData:)",
            by: "ResumedDownloadTests.resumedDownloadRequestsTheRestAndReportsItsOffset",
            "ResumedDownloadTests.serverWithoutValidatorGivesNoResumeData"),
        .proven(
            "F7", "cancelByProducingResumeData()", by: "ResumedDownloadTests.resumeDataIsMadeOnceAndOnlyAfterTheStart"),
        .deviation(
            "F8", "init() of the three",
            because: "Deprecated and inherited: they make tasks that are over, and no test of ours names them."),
    ]
}
