extension Requirement {
    /// RFC 6455 §5, §6, §8 and §10: frames, messages, text.
    static let framing = Self.frameHeader + Self.masking + Self.fragmentation + Self.controlFrames + Self.messages

    private static let frameHeader: [Requirement] = [
        .proven(
            "RFC 6455 §5.1", "A server closes the connection on a frame that is not masked.",
            by: "FrameRuleTests.unmaskedFrameFromAClientIsRejected",
            "test_conformance_framing.py::test_a_frame_masked_for_the_wrong_role_fails_the_connection"),
        .proven(
            "RFC 6455 §5.1", "A client closes the connection on a masked frame.",
            by: "FrameRuleTests.maskedFrameFromAServerIsRejected",
            "test_conformance_framing.py::test_a_frame_masked_for_the_wrong_role_fails_the_connection"),
        .proven(
            "RFC 6455 §5.2", "A reserved bit without a meaning fails the connection.",
            by: "FrameRuleTests.reservedBitsWithoutExtensionAreRefused",
            "FrameRuleTests.otherReservedBitsUnderCompressionAreRejected",
            "FrameScannerTests.reservedBitsThatWereNotAgreedAreRejected"),
        .proven(
            "RFC 6455 §5.2", "An unknown opcode fails the connection.",
            by: "FrameRuleTests.reservedOpcodeIsRejected",
            "test_conformance_framing.py::test_a_reserved_opcode_fails_the_connection"),
        .proven(
            "RFC 6455 §5.2", "The highest bit of a length of 64 bits is 0.",
            by: "FrameRuleTests.lengthWithItsHighestBitSetIsRejected", "FrameRuleTests.longestLengthIsAccepted"),
        .proven(
            "RFC 6455 §5.2", "A length is written in the fewest bytes; one that is not fails the connection.",
            by: "FrameExampleTests.shortestLengthThatFitsIsWritten",
            "FrameRuleTests.lengthInMoreBytesThanNeededIsRejected", "FrameRuleTests.everyFormOfLengthIsReadAtItsEdges"),
        .proven(
            "RFC 6455 §5.7", "The examples are read and written byte for byte.",
            by: "FrameExampleTests.unmaskedTextMessageIsRead", "FrameExampleTests.maskedTextMessageIsRead",
            "FrameExampleTests.fragmentedUnmaskedTextMessageIsRead",
            "FrameExampleTests.unmaskedPingAndItsMaskedPongAreRead", "FrameExampleTests.binaryMessageOf256BytesIsRead",
            "FrameExampleTests.binaryMessageOf64KiBIsRead", "FrameExampleTests.examplesOfTheRFCAreWritten"),
        .proven(
            "RFC 6455 §5.8", "Extensions are used only where the opening handshake agreed on them.",
            by: "DeflatingTests.nothingIsCompressedWithoutAgreement",
            "FrameRuleTests.reservedBitsWithoutExtensionAreRefused"),
    ]

    private static let masking: [Requirement] = [
        .proven(
            "RFC 6455 §5.1", "A client masks all frames, and a server none.",
            by: "FrameExampleTests.examplesOfTheRFCAreWritten", "FrameExampleTests.shortestLengthThatFitsIsWritten",
            "test_bridge_kinds.py::test_the_client_role_masks_frames_and_sends_the_required_fields"),
        .proven(
            "RFC 6455 §5.3", "The mask bit is set on a masked frame.",
            by: "FrameExampleTests.shortestLengthThatFitsIsWritten"),
        .proven(
            "RFC 6455 §5.3", "Every frame has a fresh key.", by: "FrameExampleTests.everyFrameHasAFreshMaskingKey",
            "test_frame_relay.py::test_relayed_frames_are_masked_with_a_new_key",
            "test_bridge_kinds.py::test_the_client_role_masks_frames_and_sends_the_required_fields"),
        .unproven(
            "RFC 6455 §5.3", "Keys come from a strong source of entropy and cannot be foretold.",
            because: "No test can show it: the engine takes keys from a generator that its caller must choose well."),
        .proven(
            "RFC 6455 §6.2", "A server removes the mask.", by: "FrameExampleTests.maskedTextMessageIsRead",
            "PausingTests.pausingConsumerSeesTheSameAsAContinuousOne"),
    ]

    private static let fragmentation: [Requirement] = [
        .proven(
            "RFC 6455 §5.4", "Control frames are not fragmented.",
            by: "FrameRuleTests.fragmentedControlFrameIsRejected"),
        .proven(
            "RFC 6455 §5.4", "Fragments are handed on in their order.",
            by: "FrameRuleTests.controlFramesComeBetweenFragments", "FuzzTests.anySplitGivesTheSameEventsOrOneViolation"
        ),
        .proven(
            "RFC 6455 §5.4", "Fragments of different messages are not mixed.",
            by: "FrameRuleTests.newMessageInsideAnUnfinishedOneIsRejected",
            "FrameRuleTests.continuationOfNothingIsRejected"),
        .proven(
            "RFC 6455 §5.4", "Control frames are handled in the middle of a fragmented message.",
            by: "FrameRuleTests.controlFramesComeBetweenFragments", "InflatingTests.maskedExamplesAreInflated",
            "test_conformance_framing.py::test_a_ping_between_fragments_is_answered_before_the_message"),
        .proven(
            "RFC 6455 §5.4", "Fragmented and unfragmented messages are received.",
            by: "FrameExampleTests.fragmentedUnmaskedTextMessageIsRead", "FrameRuleTests.emptyFramesAreForwarded"),
        .proven(
            "RFC 6455 §5.4", "An intermediary changes no fragmentation where it does not know the meaning of the bits.",
            by: "FrameScannerTests.everyFrameIsFoundAndEveryByteForwarded", "FrameScannerTests.agreedReservedBitsPass",
            "FrameForwarderTests.everyFrameLeavesAsItCameInAnyCut",
            "test_frame_relay.py::test_fragments_sent_in_single_bytes_are_relayed_unchanged"),
        .proven(
            "RFC 6455 §5.4", "All fragments of a message are of the type of the first.",
            by: "FrameScannerTests.piecesOfAFrameAreMarked", "FrameExampleTests.fragmentedUnmaskedTextMessageIsRead"),
    ]

    private static let controlFrames: [Requirement] = [
        .proven(
            "RFC 6455 §5.5", "Control frames have 125 bytes at most.",
            by: "FrameRuleTests.longControlFrameIsRejected", "FrameRuleTests.controlFrameOf125BytesIsAccepted"),
        .proven(
            "RFC 6455 §5.5.2", "A ping is answered with a pong, unless a Close came before.",
            by: "test_conformance_framing.py::test_a_ping_is_answered_with_its_payload",
            "test_conformance_closing.py::test_frames_after_a_close_are_not_answered"),
        .proven(
            "RFC 6455 §5.5.3", "A pong has the payload of its ping; one may stand for several pings.",
            by: "test_conformance_framing.py::test_ten_pings_are_answered_in_order",
            "PendingPingsTests.pingsAreCompletedInOrder", "PendingPingsTests.pongAnswersEveryEarlierPingToo"),
        .proven(
            "RFC 6455 §5.5.3", "An unsolicited pong is not answered.",
            by: "PendingPingsTests.unsolicitedPongIsIgnored",
            "test_conformance_framing.py::test_an_unsolicited_pong_is_ignored"),
    ]

    private static let messages: [Requirement] = [
        .proven(
            "RFC 6455 §6.1", "The first frame has the opcode of the type, the last the bit that says so.",
            by: "FrameExampleTests.examplesOfTheRFCAreWritten",
            "DeflatingTests.onlyTheFirstFrameOfACompressedMessageHasRSV1"),
        .proven(
            "RFC 6455 §6.2", "What arrives is read as frames, whatever its cuts; behind a last frame a message begins.",
            by: "FuzzTests.anySplitGivesTheSameEventsOrOneViolation", "FuzzTests.corpusIsReplayed",
            "FrameRuleTests.everyMessageIsCountedAfresh"),
        .proven(
            "RFC 6455 §5.6", "A text message as a whole is UTF-8; a frame may end inside a character.",
            by: "TextTests.charactersCutByFragmentsAreRead", "TextTests.messageThatEndsInsideACharacterIsRejected"),
        .proven(
            "RFC 6455 §8.1", "Text that is not UTF-8 fails the connection.", by: "TextTests.invalidTextFailsAtItsByte",
            "TextTests.invalidTextFailsAtItsByteAcrossFragments", "CloseFrameTests.reasonThatIsNotTextIsRejected",
            "InflatingTests.textIsCheckedAfterInflating"),
        .proven(
            "RFC 6455 §10.4", "Limits protect from frames and messages too large.",
            by: "FrameRuleTests.longMessageIsRejectedAtItsHeader",
            "FrameRuleTests.allFragmentsOfAMessageCountAgainstTheLimit",
            "InflatingTests.inflatedSizeCountsAgainstTheLimit", "InflatingTests.bombIsInflatedInPiecesOf64KiB",
            "FrameScannerTests.longMessageIsRejectedAtItsHeader"),
    ]
}
