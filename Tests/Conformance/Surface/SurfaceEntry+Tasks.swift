extension SurfaceEntry {
    /// Sections E and F: tasks.
    static let tasks: [SurfaceEntry] = [
        .proven(
            "E1", "URLSessionTask", by: "DataTaskTests.areOneWithTheirCopies",
            "SessionTests.livesOnWhileTasksRunThoughNobodyHoldsThem"),
        .deviation("E2", "init()", because: "Deprecated: it makes a task that is over, and no test of ours names it."),
        .proven(
            "E3", "taskIdentifier", by: "TaskListTests.numberTasksFromOneUp", "ResponseDispositionTests.canBeAFile"),
        .proven(
            "E4", "originalRequest", by: "DataTaskTests.takeACopyOfTheRequest",
            "TaskStateTests.tellTheCurrentRequestBehindARedirect"),
        .proven("E5", "currentRequest", by: "TaskStateTests.tellTheCurrentRequestBehindARedirect"),
        .proven("E6", "response", by: "TaskStateTests.haveTheirResponseBeforeAnybodyIsTold"),
        .proven(
            "E7", "delegate", by: "TaskDelegateTests.areAskedBeforeTheSessions", "TaskDelegateTests.areHeldUntilTheEnd",
            "TaskDelegateTests.areNotTakenOnceTheTaskRuns"),
        .proven(
            "E8", "progress", by: "TaskCountTests.finishTheirProgress", "TaskCountTests.obeyTheirProgress",
            "TaskCountTests.cancelWithTheProgressThatTheyArePartOf"),
        .proven("E9", "earliestBeginDate", by: "TaskStateTests.keepLabelsAndHints"),
        .proven("E10", "countOfBytesClientExpectsToSend", by: "TaskStateTests.keepLabelsAndHints"),
        .proven("E11", "countOfBytesClientExpectsToReceive", by: "TaskStateTests.keepLabelsAndHints"),
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
        .proven("E16", "taskDescription", by: "TaskStateTests.keepLabelsAndHints"),
        .proven(
            "E17", "state", by: "TaskStateTests.goFromSuspendedOverRunningToCompleted",
            "DataTaskTests.tellADelegateWithoutHandler"),
        .proven(
            "E18", "State", by: "TaskStateTests.numberTheirValuesAsFoundationDoes",
            "TimeoutTests.standStillWhileATaskIsSuspended"),
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
            "TaskListTests.areToldByATaskThatCannotBeResumed"),
        .proven("E23", "priority", by: "ConnectionUseTests.goToTheHighestPriorityFirst"),
        .proven("E24", "defaultPriority", by: "TaskStateTests.numberTheirValuesAsFoundationDoes"),
        .proven("E25", "lowPriority", by: "TaskStateTests.numberTheirValuesAsFoundationDoes"),
        .proven("E26", "highPriority", by: "TaskStateTests.numberTheirValuesAsFoundationDoes"),
        .proven("E27", "prefersIncrementalDelivery", by: "TaskStateTests.keepLabelsAndHints"),
        .proven("F1", "URLSessionDataTask", by: "DataTaskTests.loadByURLAndByRequest"),
        .proven(
            "F2", "URLSessionUploadTask", by: "UploadTaskTests.sendDataInPlaceOfTheRequestsBody",
            "TaskListTests.sortByKind"),
        .proven(
            "F3", "cancel(byProducingResumeData:) of uploads",
            by: "UploadTaskTests.giveNoResumeDataWhereTheServerKnowsNothingOfIt"),
        .proven(
            "F4", "cancelByProducingResumeData() of uploads",
            by: "UploadTaskTests.giveNoResumeDataWhereTheServerKnowsNothingOfIt"),
        .proven(
            "F5", "URLSessionDownloadTask", by: "DownloadTaskTests.tellADelegateWhereTheFileIsWhileItIs",
            "DownloadTaskTests.leaveNoFileBehindAFailure"),
        .proven(
            "F6", "cancel(byProducingResumeData:)", by: "ResumedDownloadTests.askForTheRestAndTellWhereItBegins",
            "ResumedDownloadTests.cannotWhereTheServerGivesNothingToGoOnBy"),
        .proven(
            "F7", "cancelByProducingResumeData()", by: "ResumedDownloadTests.makeNoneTwiceAndNoneForWhatHasNotBegun"),
        .deviation(
            "F8", "init() of the three",
            because: "Deprecated and inherited: they make tasks that are over, and no test of ours names them."),
    ]
}
