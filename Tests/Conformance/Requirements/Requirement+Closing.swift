extension Requirement {
    /// RFC 6455 §5.5.1 and §7: closing and failing.
    static let closing = Self.closeFrames + Self.ends

    private static let closeFrames: [Requirement] = [
        .proven(
            "RFC 6455 §5.5.1", "A body begins with a code of two bytes, the highest first.",
            by: "CloseFrameTests.halfACodeIsRejected", "CloseFrameTests.codeThatMayBeSentIsAccepted",
            "ClosePayloadTests.codeIsBigEndianBeforeTheReason"),
        .proven(
            "RFC 6455 §5.5.1", "A reason is UTF-8 and fits into the frame.",
            by: "ClosePayloadTests.longReasonIsCutBetweenCharacters", "ClosePayloadTests.reasonThatIsNotTextIsLeftOut",
            "CloseFrameTests.reasonThatIsNotTextIsRejected", "CloseFrameTests.longestReasonIsAccepted"),
        .proven(
            "RFC 6455 §5.5.1", "A Close is answered with a Close, unless ours was sent before.",
            by: "test_conformance_closing.py::test_a_close_is_answered_with_its_code_and_the_stream_ends",
            "test_conformance_closing.py::test_a_close_without_code_is_answered_without_code",
            "test_conformance_closing.py::test_a_second_close_is_not_answered"),
        .proven(
            "RFC 6455 §5.5.1", "A server ends the connection once both have sent a Close.",
            by: "test_conformance_closing.py::test_a_close_is_answered_with_its_code_and_the_stream_ends"),
        .proven(
            "RFC 6455 §5.5.1", "No data frame follows our own Close.",
            by: "WebSocketTaskTests.sendsAfterAQueuedCloseFail",
            "WebSocketTaskTests.bothLearnCodeAndReason"),
        .proven(
            "RFC 6455 §7.4.1", "1005, 1006 and 1015 are never sent.",
            by: "ClosePayloadTests.reservedCodeIsNeverSent", "ClosePayloadTests.payloadWithoutACodeIsEmpty"),
        .proven(
            "RFC 6455 §7.4.1", "A Close with a code that may not be sent fails the connection.",
            by: "CloseFrameTests.codeThatMayNotBeSentIsRejected",
            "test_conformance_closing.py::test_a_reserved_close_code_is_refused"),
        .proven(
            "RFC 6455 §7.4.2", "Codes registered later and those from 3000 to 4999 are accepted.",
            by: "CloseFrameTests.codeThatMayBeSentIsAccepted"),
    ]

    private static let ends: [Requirement] = [
        .proven(
            "RFC 6455 §7.1.2", "To close, a Close frame with the code and the reason is sent.",
            by: "test_bridge_kinds.py::test_close_code_and_reason_are_relayed",
            "ClosePayloadTests.codeIsBigEndianBeforeTheReason"),
        .proven(
            "RFC 6455 §7.1.5",
            "The close code is that of the first Close received, 1005 without one, 1006 without a Close.",
            by: "WebSocketTaskTests.bothLearnCodeAndReason", "WebSocketTaskTests.anEndWithoutCloseFrameIsAbnormal",
            "test_task_client.py::test_a_close_without_code_is_reported_as_1005",
            "test_task_client.py::test_an_end_without_close_is_reported_as_unclean"),
        .proven(
            "RFC 6455 §7.1.7", "Nothing is processed any more once the connection is failed.",
            by: "FuzzTests.anySplitGivesTheSameEventsOrOneViolation", "CloseFrameTests.framesAfterACloseAreNotDecoded",
            "test_conformance_framing.py::test_frames_before_a_reserved_bit_are_answered_and_later_ones_are_not"),
        .proven(
            "RFC 6455 §7.1.7", "A connection is failed with the code that says why.",
            by: "FrameRuleTests.ruleHasItsCloseCode",
            "test_conformance_framing.py::test_a_message_above_the_limit_is_refused_with_1009"),
        .proven(
            "RFC 6455 §7.2.1", "A connection that is lost is over, without a closing handshake.",
            by: "test_conformance_closing.py::test_a_client_that_ends_without_close_releases_its_descriptors",
            "test_conformance_closing.py::test_a_client_that_resets_releases_its_descriptors"),
    ]
}
