extension SurfaceEntry {
    /// Section O: protocols of the program, and schemes.
    static let protocols: [SurfaceEntry] = [
        .proven("O1", "URLProtocol", by: "ProtocolClassTests.handlerGetsAllPieces"),
        .deviation(
            "O2", "init(request:cachedResponse:client:)",
            because:
                "Required, so that a session can make a class that it does not know: a subclass with an initializer of its own repeats it."
        ),
        .proven("O3", "client", by: "ProtocolClassTests.delegateGetsEachPieceAsItIs"),
        .proven("O4", "request", by: "ProtocolMessageTests.requestIsLoadedInItsCanonicalForm"),
        .proven("O5", "cachedResponse", by: "ProtocolMessageTests.protocolMayReportAValidCachedResponse"),
        .proven("O6", "canInit(with: request)", by: "ProtocolClassTests.protocolsAreAskedInOrderBeforeTheSessionsOwn"),
        .proven("O7", "canonicalRequest(for:)", by: "ProtocolMessageTests.requestIsLoadedInItsCanonicalForm"),
        .proven("O8", "requestIsCacheEquivalent(_:to:)", by: "ProtocolMessageTests.propertiesOfARequestAreKept"),
        .proven("O9", "startLoading(), stopLoading()", by: "ProtocolMessageTests.protocolIsStoppedOnce"),
        .proven(
            "O10", "property, setProperty, removeProperty", by: "ProtocolMessageTests.propertiesOfARequestAreKept",
            "ProtocolClassTests.protocolReadsPropertiesOfTheRequest"),
        .proven(
            "O11", "registerClass(_:), unregisterClass(_:)",
            by: "ProtocolMessageTests.registeredClassServesTheSharedSession"),
        .proven(
            "O12", "canInit(with: task)", by: "ProtocolMessageTests.registeredClassServesTheSharedSession"),
        .proven(
            "O13", "init(task:cachedResponse:client:)", by: "ProtocolMessageTests.requestIsLoadedInItsCanonicalForm"),
        .proven("O14", "task", by: "ProtocolMessageTests.requestIsLoadedInItsCanonicalForm"),
        .proven("O15", "URLProtocolClient", by: "ProtocolClassTests.handlerGetsAllPieces"),
        .proven("O16", "wasRedirectedTo redirectResponse", by: "ProtocolMessageTests.protocolMayRedirect"),
        .proven("O17", "cachedResponseIsValid", by: "ProtocolMessageTests.protocolMayReportAValidCachedResponse"),
        .proven(
            "O18", "didReceive response cacheStoragePolicy", by: "ProtocolClassTests.responseOfAProtocolMayBeCached",
            "ProtocolMessageTests.protocolMayReportAValidCachedResponse"),
        .proven(
            "O19", "didLoad", by: "ProtocolClassTests.delegateGetsEachPieceAsItIs",
            "ProtocolBacklogTests.piecesWaitUntilTheirConsumerReads"),
        .proven("O20", "urlProtocolDidFinishLoading", by: "ProtocolClassTests.failedProtocolLoadHasNoContent"),
        .proven(
            "O21", "didFailWithError", by: "ProtocolClassTests.failureOfTheProtocolIsTheTasks",
            "ProtocolClassTests.failedAndCancelledTaskEndsOnce"),
        .proven("O22", "didReceive challenge", by: "ProtocolMessageTests.protocolMayChallenge"),
        .deviation(
            "O23", "didCancel challenge",
            because: "Nothing is taken back of a challenge that was asked: its answer is then without effect."),
        .proven(
            "O24", "http, https, data", by: "SchemeTests.dataURLHasItsContent",
            "SchemeTests.urlWithoutDataIsAFailure", "DataTaskTests.dataTaskLoadsByURLAndByRequest"),
        .proven("O25", "file", by: "SchemeTests.fileIsRead"),
    ]
}
