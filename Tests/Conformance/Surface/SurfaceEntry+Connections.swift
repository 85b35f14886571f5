extension SurfaceEntry {
    /// Section G: stream tasks.
    static let streams: [SurfaceEntry] = [
        .proven(
            "G1", "URLSessionStreamTask", by: "StreamTaskTests.streamTaskReadsBytesOfItsPeer",
            "StreamTaskTests.taskEndsWithItsConnection", "StreamDirectionTests.taskCompletesWhenBothDirectionsAreClosed"
        ),
        .proven(
            "G2", "readData(ofMinLength:maxLength:timeout:completionHandler:)",
            by: "StreamTaskTests.readWaitsForItsMinimum", "StreamTaskTests.readGivesLessAtTheEnd",
            "StreamTaskTests.timedOutReadFailsTheReadsQueuedAfterIt"),
        .proven(
            "G3", "readData(ofMinLength:maxLength:timeout:)", by: "StreamTaskTests.streamTaskReadsBytesOfItsPeer",
            "StreamTaskTests.bytesOfAWithdrawnReadGoToTheNext"),
        .proven(
            "G4", "write(_:timeout:completionHandler:)", by: "StreamTaskTests.operationsBeforeTheConnectionRunInOrder",
            "StreamTaskTests.writeTimesOut"),
        .proven("G5", "write(_:timeout:)", by: "StreamTaskTests.streamTaskReadsBytesOfItsPeer"),
        .proven("G6", "captureStreams()", by: "CapturedStreamTests.capturedInputStartsWithBufferedBytes"),
        .proven(
            "G7", "closeWrite()", by: "StreamDirectionTests.closeWriteFollowsQueuedWrites",
            "SecureStreamTests.bytesBeforeTheEndAreReadAfterThePeerLeft"),
        .proven("G8", "closeRead()", by: "StreamDirectionTests.closeReadFollowsQueuedReads"),
        .proven(
            "G9", "startSecureConnection()", by: "SecureStreamTests.securedStreamContinuesEncrypted",
            "SecureStreamTests.untrustedServerEndsTheTask",
            "SecureStreamTests.delegateThatCancelsEndsTheTask",
            "SecureStreamTests.delegatesClientCertificateIsShown"),
        .proven("G10", "stopSecureConnection()", by: "SecureStreamTests.tlsIsNotStoppedAgain"),
    ]

    /// Section H: WebSocket tasks.
    static let webSockets: [SurfaceEntry] = [
        .proven(
            "H1", "URLSessionWebSocketTask", by: "WebSocketTaskTests.messagesAreSentAndReceivedInOrder",
            "WebSocketOpeningTests.handshakeFollowsRedirects", "WebSocketOpeningTests.basicChallengeIsAnswered",
            "WebSocketOpeningTests.digestChallengeIsAnswered", "WebSocketOpeningTests.cookiesGoBothWays"),
        .proven("H2", "Message", by: "WebSocketTaskTests.messagesAreSentAndReceivedInOrder"),
        .proven("H3", "NSURLSessionWebSocketMessage", by: "WebSocketValueTests.messagesAreObjectsToo"),
        .proven(
            "H4", "send(_:completionHandler:)", by: "WebSocketTaskTests.messagesAreSentAndReceivedInOrder",
            "WebSocketTaskTests.handlersRunOnTheDelegateQueue"),
        .proven("H5", "send(_:)", by: "WebSocketTaskTests.messagesAreSentAndReceivedInOrder"),
        .proven(
            "H6", "receive(completionHandler:)", by: "WebSocketTaskTests.messagesAreSentAndReceivedInOrder",
            "WebSocketTaskTests.fragmentsAreJoinedHoweverTheyArrive",
            "WebSocketTaskTests.messagesAreQueuedUntilReceived"),
        .proven("H7", "receive()", by: "WebSocketTaskTests.cancelledReceiveLosesNoMessage"),
        .proven(
            "H8", "sendPing(pongReceiveHandler:)", by: "WebSocketTaskTests.pingsAreAnsweredInOrderOnceEach",
            "WebSocketTaskTests.unsolicitedPongsAreIgnored"),
        .proven("H9", "sendPing()", by: "WebSocketTaskTests.pingsAreAnsweredInOrderOnceEach"),
        .proven(
            "H10", "cancel(with:reason:)", by: "WebSocketClosingTests.codeAndReasonAreSent",
            "WebSocketClosingTests.codeThatIsNotForTheWireIsNotSent",
            "WebSocketClosingTests.ownCloseIsReportedWhenTheServerDisconnects"),
        .proven("H11", "cancel()", by: "WebSocketClosingTests.cancelEndsTheTaskWithoutWaiting"),
        .proven(
            "H12", "maximumMessageSize", by: "WebSocketClosingTests.messageThatIsTooLongIsRefused",
            "WebSocketClosingTests.maximumMessageSizeIsEnforced"),
        .proven(
            "H13", "closeCode", by: "WebSocketClosingTests.closeCodeAndReasonOfTheServerAreReported",
            "WebSocketClosingTests.lostConnectionFailsTheTask"),
        .proven("H14", "closeReason", by: "WebSocketClosingTests.closeCodeAndReasonOfTheServerAreReported"),
        .proven("H15", "CloseCode", by: "WebSocketValueTests.anyCloseCodeHasAValue"),
        .proven(
            "H16", "the opening handshake", by: "WebSocketOpeningTests.unofferedSubprotocolOrExtensionIsRefused",
            "WebSocketOpeningTests.refusedOpeningHasTheStatus"),
        .proven(
            "H17", "after the end", by: "WebSocketClosingTests.lostConnectionFailsTheTask",
            "WebSocketOpeningTests.droppedHandshakeIsAFailure", "WebSocketClosingTests.messagesBeforeTheEndAreDelivered"
        ),
    ]

    /// The end of section I: the delegates of both.
    static let connectionDelegates: [SurfaceEntry] = [
        .proven("I35", "URLSessionStreamDelegate", by: "StreamDirectionTests.taskCompletesWhenBothDirectionsAreClosed"),
        .proven("I36", "readClosedFor", by: "StreamDirectionTests.readClosedIsReportedWithoutARead"),
        .proven("I37", "writeClosedFor", by: "StreamDirectionTests.closeWriteFollowsQueuedWrites"),
        .proven(
            "I38", "betterRouteDiscoveredFor", by: "ConnectivityTests.betterRouteOfAStreamIsReported",
            "PathMonitorTests.aBetterRouteIsReportedOnce"),
        .proven(
            "I39", "didBecome inputStream:outputStream:",
            by: "CapturedStreamTests.capturedInputStartsWithBufferedBytes"),
        .proven(
            "I40", "URLSessionWebSocketDelegate", by: "WebSocketClosingTests.closeCodeAndReasonOfTheServerAreReported"),
        .proven("I41", "didOpenWithProtocol", by: "WebSocketOpeningTests.subprotocolsAreOfferedAsAList"),
        .proven(
            "I42", "didCloseWith", by: "WebSocketClosingTests.closeCodeAndReasonOfTheServerAreReported",
            "WebSocketClosingTests.closeFrameWithoutACodeIsReported"),
    ]
}
