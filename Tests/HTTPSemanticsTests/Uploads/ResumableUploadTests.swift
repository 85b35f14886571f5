import HTTPSemantics
import HTTPTypes
import Testing

@Suite("Resumable upload, draft-ietf-httpbis-resumable-upload")
struct ResumableUploadTests {
    private typealias Fields = [(String, String)]

    private func fields(_ lines: Fields) -> HTTPFields {
        var fields = HTTPFields()
        for (name, value) in lines {
            if let name = HTTPField.Name(name) { fields.append(HTTPField(name: name, value: value)) }
        }
        return fields
    }

    /// Sun, 06 Nov 1994 08:49:37 GMT, the example of RFC 9110 §5.6.7.
    private static let now = HTTPDate(seconds: 784_111_777)

    private let announcement: Fields = [("Upload-Draft-Interop-Version", "9"), ("Location", "/up/1")]

    /// An upload of 100 bytes whose server has named the resource.
    private func upload(_ version: UploadVersion = .nine, limits: String? = nil) -> ResumableUpload {
        var upload = ResumableUpload(version, length: 100)
        var lines: Fields = [("Upload-Draft-Interop-Version", "\(version.rawValue)"), ("Location", "/up/1")]
        if let limits { lines.append(("Upload-Limit", limits)) }
        #expect(
            upload.informationalReceived(status: 104, fields: self.fields(lines), now: Self.now) == .remember("/up/1"))
        upload.resourceFound()
        return upload
    }

    /// An upload that asks for its offset.
    private func asking(_ version: UploadVersion = .nine, limits: String? = nil) -> ResumableUpload {
        var upload = self.upload(version, limits: limits)
        _ = upload.interrupted(now: Self.now)
        upload.pauseEnded()
        return upload
    }

    /// An upload that sends a part from `offset` on.
    private func appending(
        _ version: UploadVersion = .nine, from offset: Int = 40, limits: String? = nil
    ) -> ResumableUpload {
        var upload = self.asking(version, limits: limits)
        let fields: Fields = [("Upload-Offset", "\(offset)"), ("Upload-Complete", "?0")]
        guard case .append = self.answer(&upload, 204, fields) else {
            Issue.record("no part")
            return upload
        }
        return upload
    }

    private func answer(
        _ upload: inout ResumableUpload, _ status: Int, _ lines: Fields = [], sent: Bool = true, now: HTTPDate = now
    ) -> ResumableUpload.ResponseAction {
        upload.responseReceived(
            status: status, fields: self.fields(lines), isWholePartSent: sent, now: now)
    }

    private func isRetry(_ action: ResumableUpload.ResponseAction) -> Bool {
        if case .retrieveOffset = action { true } else { false }
    }

    // MARK: Creation

    @Test func uploadIsResumableOnceTheServerNamesAResource() {
        var upload = ResumableUpload(.nine, length: 100)
        #expect(!upload.isResumable && upload.interrupted(now: Self.now) == .giveUp)
        #expect(
            upload.informationalReceived(status: 103, fields: self.fields(self.announcement), now: Self.now) == .ignore)
        #expect(
            upload.informationalReceived(status: 104, fields: self.fields(self.announcement), now: Self.now)
                == .remember("/up/1"))
        #expect(!upload.isResumable)
        upload.resourceFound()
        #expect(upload.isResumable)
        // A second one could be injected.
        let other: Fields = [("Upload-Draft-Interop-Version", "9"), ("Location", "/up/2")]
        #expect(upload.informationalReceived(status: 104, fields: self.fields(other), now: Self.now) == .ignore)
    }

    @Test(arguments: [[("Location", "/a")], [("Location", "/a"), ("Upload-Draft-Interop-Version", "8")]])
    func resourceOfAnotherVersionIsIgnored(_ lines: [(String, String)]) {
        var upload = ResumableUpload(.nine, length: 100)
        #expect(upload.informationalReceived(status: 104, fields: self.fields(lines), now: Self.now) == .ignore)
    }

    @Test func repeatedCreationForgetsTheResource() {
        var upload = self.upload()
        _ = upload.informationalReceived(
            status: 104, fields: self.fields([("Upload-Draft-Interop-Version", "9"), ("Upload-Offset", "50")]),
            now: Self.now)
        #expect(upload.acknowledged == 50)
        upload.creationRepeated()
        #expect(!upload.isResumable && upload.acknowledged == 0)
    }

    @Test(arguments: [200, 201, 204, 303, 307, 400, 403, 404, 409, 422, 500])
    func responseToTheWholeCreationIsFinal(_ status: Int) {
        var upload = self.upload(.eight)
        #expect(self.answer(&upload, status) == .deliver && upload.phase == .ended && !upload.isResumable)
    }

    @Test func serverErrorWithinTheCreationInterruptsIt() {
        for status in [500, 502, 503] {
            var upload = self.upload(.eight)
            #expect(self.isRetry(self.answer(&upload, status, sent: false)))
        }
        // The newest servers mark the response of the target.
        var unmarked = self.upload()
        #expect(self.isRetry(self.answer(&unmarked, 502)))
        var marked = self.upload()
        #expect(self.answer(&marked, 500, [("Upload-Complete", "?1")], sent: false) == .deliver)
        var unknown = ResumableUpload(.nine, length: 100)
        #expect(self.answer(&unknown, 503, sent: false) == .deliver)
    }

    @Test func uploadIsCreatedAgainInTheVersionOfTheServer() {
        var upload = ResumableUpload(.nine, length: 100)
        #expect(self.answer(&upload, 400, [("Upload-Draft-Interop-Version", "6")], sent: false) == .createAgain)
        #expect(upload.version == .six && upload.phase == .creating)
        // Only once.
        #expect(self.answer(&upload, 400, [("Upload-Draft-Interop-Version", "5")]) == .deliver)
        for version in ["9", "2", "x"] {
            var other = ResumableUpload(.nine, length: 100)
            #expect(self.answer(&other, 400, [("Upload-Draft-Interop-Version", version)]) == .deliver)
        }
    }

    @Test func creationThatIsTooLongContinuesInParts() {
        var upload = self.upload(limits: "max-append-size=30")
        #expect(self.isRetry(self.answer(&upload, 413, sent: false)))
        var unlimited = self.upload()
        #expect(self.answer(&unlimited, 413, sent: false) == .deliver)
    }

    @Test func uploadAboveTheLimitIsRefusedAtOnce() {
        var upload = ResumableUpload(.nine, length: 100)
        let lines = self.announcement + [("Upload-Limit", "max-size=99")]
        #expect(
            upload.informationalReceived(status: 104, fields: self.fields(lines), now: Self.now)
                == .refuse(limit: 99, "/up/1"))
        var fitting = ResumableUpload(.nine, length: 99)
        #expect(
            fitting.informationalReceived(status: 104, fields: self.fields(lines), now: Self.now) == .remember("/up/1"))
    }

    // MARK: The offset

    @Test func restIsAppendedAtTheOffsetOfTheServer() {
        var upload = self.asking()
        #expect(upload.requestFields == UploadVersion.nine.offsetFields)
        let part = UploadPart(offset: 40, length: 60, isLast: true)
        #expect(self.answer(&upload, 204, [("Upload-Offset", "40"), ("Upload-Complete", "?0")]) == .append(part))
        #expect(upload.phase == .appending(part) && upload.requestFields == UploadVersion.nine.fields(of: part))
    }

    @Test func emptyPartCompletesAnUploadThatHasEverything() {
        var upload = self.asking()
        let part = UploadPart(offset: 100, length: 0, isLast: true)
        #expect(self.answer(&upload, 200, [("Upload-Offset", "100"), ("Upload-Complete", "?0")]) == .append(part))
    }

    @Test func responseOfACompleteUploadIsTheLastOne() {
        var upload = self.asking()
        #expect(self.answer(&upload, 204, [("Upload-Complete", "?1"), ("Upload-Offset", "100")]) == .deliver)
        var silent = self.asking(.three)
        #expect(self.answer(&silent, 204, [("Upload-Incomplete", "?0")]) == .deliver)
    }

    @Test func impossibleOffsetEndsTheUpload() {
        let cases: [(Fields, UploadFailure)] = [
            ([("Upload-Offset", "101")], .wrongOffset(101, length: 100)), ([], .noOffset),
            ([("Upload-Offset", "-1")], .noOffset), ([("Upload-Offset", "9999999999999999")], .noOffset),
            ([("Upload-Offset", "30"), ("Upload-Complete", "?1")], .wrongOffset(30, length: 100)),
            ([("Upload-Offset", "30"), ("Upload-Length", "99")], .otherLength(99)),
        ]
        for (lines, failure) in cases {
            var upload = self.asking()
            #expect(self.answer(&upload, 204, lines) == .fail(failure), "\(lines)")
            #expect(upload.phase == .ended && upload.isResumable == (failure == .noOffset))
        }
    }

    @Test func acknowledgedBytesCannotBeLost() {
        var upload = self.appending(from: 40)
        _ = upload.informationalReceived(
            status: 104, fields: self.fields([("Upload-Draft-Interop-Version", "9"), ("Upload-Offset", "70")]),
            now: Self.now)
        _ = upload.interrupted(now: Self.now)
        upload.pauseEnded()
        #expect(
            self.answer(&upload, 204, [("Upload-Offset", "69")]) == .fail(.offsetDecreased(from: 70, to: 69)))
        #expect(!upload.isResumable)
    }

    @Test(arguments: [(404, false), (410, false), (400, true), (401, true), (403, true), (405, true), (409, true)])
    func refusedOffsetEndsTheUpload(_ status: Int, _ staysResumable: Bool) {
        var upload = self.asking()
        let failure: UploadFailure = staysResumable ? .refused(status: status) : .gone(status: status)
        #expect(self.answer(&upload, status) == .fail(failure))
        #expect(upload.isResumable == staysResumable)
    }

    @Test(arguments: [408, 425, 429, 500, 502, 503, 504])
    func temporaryRefusalOfTheOffsetIsRepeated(_ status: Int) {
        var upload = self.asking()
        #expect(self.isRetry(self.answer(&upload, status)))
    }

    @Test(arguments: [301, 302, 307, 308])
    func movedResourceIsAskedAtItsNewPlace(_ status: Int) {
        var upload = self.asking()
        #expect(self.answer(&upload, status) == .move && upload.phase == .retrievingOffset)
    }

    @Test func offsetOfAStreamNeedsNoLength() {
        var upload = ResumableUpload(.nine, length: nil)
        #expect(
            upload.informationalReceived(status: 104, fields: self.fields(self.announcement), now: Self.now)
                == .remember("/up/1"))
        upload.resourceFound()
        _ = upload.interrupted(now: Self.now)
        upload.pauseEnded()
        let part = UploadPart(offset: 5_000_000_000, length: nil, isLast: true)
        #expect(self.answer(&upload, 204, [("Upload-Offset", "5000000000")]) == .append(part))
    }

    // MARK: Parts

    @Test func partsAreNoLargerThanTheServerAllows() {
        var upload = self.appending(from: 0, limits: "max-append-size=45")
        var parts: [UploadPart] = []
        while case .appending(let part) = upload.phase {
            parts.append(part)
            let lines: Fields = [("Upload-Complete", part.isLast ? "?1" : "?0")]
            _ = self.answer(&upload, part.isLast ? 200 : 204, lines)
        }
        #expect(parts.map(\.offset) == [0, 45, 90] && parts.map(\.length) == [45, 45, 10])
        #expect(parts.map(\.isLast) == [false, false, true] && upload.phase == .ended)
    }

    @Test(arguments: [200, 201, 204, 303, 400, 403, 422, 500, 503])
    func completeResponseToAPartIsFinal(_ status: Int) {
        var upload = self.appending()
        #expect(self.answer(&upload, status, [("Upload-Complete", "?1")]) == .deliver)
    }

    @Test func responseToAPartIsFinalInOldVersions() {
        for status in [200, 403, 500] {
            var upload = self.appending(.six)
            #expect(self.answer(&upload, status) == .deliver)
        }
        var conflict = self.appending(.six)
        #expect(self.answer(&conflict, 409) == .deliver)
    }

    @Test func unmarkedErrorOfAPartInterruptsIt() {
        for status in [408, 429, 500, 503] {
            var upload = self.appending()
            #expect(self.isRetry(self.answer(&upload, status)))
        }
        var refused = self.appending()
        #expect(self.answer(&refused, 403) == .deliver)
        var gone = self.appending()
        #expect(self.answer(&gone, 404) == .fail(.gone(status: 404)) && !gone.isResumable)
    }

    @Test func mismatchingOffsetIsAskedForAgain() {
        for lines: Fields in [
            [("Upload-Offset", "50")], [("Upload-Offset", "50"), ("Upload-Complete", "?0")], [],
            [("Upload-Offset", "50"), ("Upload-Complete", "?1")],
        ] {
            var upload = self.appending()
            #expect(self.isRetry(self.answer(&upload, 409, lines)), "\(lines)")
        }
        // A conflict that the target of the upload reports.
        var conflict = self.appending()
        #expect(self.answer(&conflict, 409, [("Upload-Complete", "?1")]) == .deliver)
    }

    @Test func acceptedPartThatCompletesNothingIsLookedInto() {
        var upload = self.appending()
        #expect(self.isRetry(self.answer(&upload, 200, [("Upload-Complete", "?0")])))
        var limited = self.appending(limits: "max-append-size=10")
        #expect(self.isRetry(self.answer(&limited, 204, [("Upload-Offset", "45")])))
    }

    @Test func smallerLimitDividesTheRest() {
        var upload = self.appending()
        #expect(self.isRetry(self.answer(&upload, 413, [("Upload-Limit", "max-append-size=20")], sent: false)))
        upload.pauseEnded()
        let part = UploadPart(offset: 40, length: 20, isLast: false)
        #expect(self.answer(&upload, 204, [("Upload-Offset", "40")]) == .append(part))
        #expect(self.answer(&upload, 413) == .deliver)
    }

    // MARK: Bounds

    @Test func pausesGrowUntilTheUploadIsGivenUp() {
        var upload = self.upload()
        var pauses: [Duration] = []
        while case .retrieveOffset(let pause) = upload.interrupted(now: Self.now) {
            pauses.append(pause)
            upload.pauseEnded()
        }
        #expect(pauses.count == ResumableUpload.fruitlessLimit)
        #expect(
            pauses == [
                .milliseconds(100), .milliseconds(400), .milliseconds(1600), .milliseconds(6400), .milliseconds(25_600),
                .seconds(60), .seconds(60), .seconds(60),
            ])
        #expect(upload.isResumable)
    }

    @Test func progressAllowsMoreInterruptions() {
        var upload = ResumableUpload(resuming: .nine, length: 1_000_000, acknowledged: 0)
        var continuations = 0
        while continuations < 2000 {
            guard case .append = self.answer(&upload, 204, [("Upload-Offset", "\(continuations + 1)")]),
                case .retrieveOffset(let pause) = upload.interrupted(now: Self.now)
            else { break }
            #expect(pause == .milliseconds(100))
            upload.pauseEnded()
            continuations += 1
        }
        #expect(continuations == ResumableUpload.continuationLimit)
    }

    @Test func progressOfAPartAllowsMoreInterruptions() {
        var upload = self.appending(from: 0)
        for offset in 1...30 {
            let lines: Fields = [("Upload-Draft-Interop-Version", "9"), ("Upload-Offset", "\(offset)")]
            _ = upload.informationalReceived(status: 104, fields: self.fields(lines), now: Self.now)
            #expect(upload.interrupted(now: Self.now) == .retrieveOffset(after: .milliseconds(100)))
            upload.pauseEnded()
            _ = self.answer(&upload, 204, [("Upload-Offset", "\(offset)")])
        }
    }

    @Test func serverMayAskForALongerPause() {
        for (text, seconds) in [
            ("7", 7), ("100000", 300), ("9999999999999999999999", 300), ("soon", 0), ("-5", 0), ("7;a=1", 0),
            ("Sun, 06 Nov 1994 08:49:57 GMT", 20), ("Sunday, 06-Nov-94 08:49:57 GMT", 20),
            ("Sun Nov  6 08:49:57 1994", 20), ("Sun, 06 Nov 1994 10:00:00 GMT", 300),
            ("Sun, 06 Nov 1994 08:00:00 GMT", 0),
        ] {
            var upload = self.asking()
            let action = self.answer(&upload, 503, [("Retry-After", text)])
            #expect(action == .retrieveOffset(after: seconds > 0 ? .seconds(seconds) : .milliseconds(400)))
        }
    }

    // MARK: Lifetime

    @Test func uploadIsNotContinuedAfterItsLifetime() {
        // 100 ms and 400 ms count as no seconds.
        var fresh = self.upload(limits: "max-age=5")
        #expect(fresh.interrupted(now: Self.now.advanced(by: 4)) == .retrieveOffset(after: .milliseconds(100)))
        var old = self.upload(limits: "max-age=5")
        #expect(old.interrupted(now: Self.now.advanced(by: 5)) == .giveUp && !old.isResumable)
        #expect(old.cancelled() == false)
        // The pause would last longer.
        var pausing = self.asking(limits: "max-age=60")
        #expect(self.answer(&pausing, 503, [("Retry-After", "60")]) == .fail(.expired) && !pausing.isResumable)
        var waiting = self.asking(limits: "max-age=60")
        #expect(self.isRetry(self.answer(&waiting, 503, [("Retry-After", "59")])))
    }

    @Test func eachResponseMayExtendTheLifetime() {
        var upload = self.asking(limits: "max-age=60")
        let later = Self.now.advanced(by: 59)
        let fields: Fields = [("Upload-Offset", "40"), ("Upload-Limit", "max-age=60")]
        let part = UploadPart(offset: 40, length: 60, isLast: true)
        #expect(self.answer(&upload, 204, fields, now: later) == .append(part))
        #expect(upload.limits.expiry == later.advanced(by: 60))
        #expect(upload.interrupted(now: Self.now.advanced(by: 118)) != .giveUp)
    }

    @Test func resumedUploadKnowsItsLifetime() {
        let limits = UploadLimits(partSize: nil, expiry: Self.now)
        var old = ResumableUpload(resuming: .nine, length: 9, acknowledged: 0, limits: limits)
        #expect(old.begin(now: Self.now) == .expired && old.phase == .ended && !old.isResumable)
        var young = ResumableUpload(resuming: .nine, length: 9, acknowledged: 0, limits: limits)
        #expect(young.begin(now: Self.now.advanced(by: -1)) == nil && young.phase == .retrievingOffset)
    }

    // MARK: Cancelling

    @Test func cancelledUploadIsDeletedIfTheServerHasIt() {
        let kept = [self.upload(), self.asking(), self.appending(), self.appending(.three)]
        for var upload in kept {
            #expect(upload.cancelled() == true && upload.phase == .cancelling && !upload.isResumable)
            #expect(upload.requestFields == upload.version.offsetFields)
            // Only once, and nothing else follows.
            #expect(upload.cancelled() == false && upload.interrupted(now: Self.now) == .giveUp)
            #expect(self.answer(&upload, 307) == .deliver)
        }
        var unknown = ResumableUpload(.nine, length: 100)
        #expect(unknown.cancelled() == false)
        var repeated = self.upload()
        repeated.creationRepeated()
        #expect(repeated.cancelled() == false)
        var complete = self.appending()
        _ = self.answer(&complete, 200, [("Upload-Complete", "?1")])
        #expect(complete.cancelled() == false)
        var gone = self.asking()
        _ = self.answer(&gone, 404)
        #expect(gone.cancelled() == false)
    }

    /// The client must not continue it, and should cancel it.
    @Test func contradictoryUploadIsDeleted() {
        var upload = self.asking()
        #expect(self.answer(&upload, 204, [("Upload-Offset", "101")]) == .fail(.wrongOffset(101, length: 100)))
        #expect(!upload.isResumable && upload.cancelled() == true)
        var changed = self.appending()
        changed.becomeUnresumable()
        #expect(!changed.isResumable && changed.cancelled() == true)
    }

    @Test func limitThatIsNamedLateEndsTheUpload() {
        var upload = self.asking()
        let fields: Fields = [("Upload-Offset", "40"), ("Upload-Limit", "max-size=99")]
        #expect(self.answer(&upload, 204, fields) == .fail(.tooLong(limit: 99)) && !upload.isResumable)
    }

    @Test func serverCannotAskForEndlesslyManyParts() {
        for (size, isRefused) in [(1, true), (9, true), (11, false)] {
            var upload = ResumableUpload(resuming: .nine, length: 1_000_000, acknowledged: 0)
            let fields: Fields = [("Upload-Offset", "0"), ("Upload-Limit", "max-append-size=\(size)")]
            let action = self.answer(&upload, 204, fields)
            #expect((action == .fail(.partsTooSmall(limit: Int64(size)))) == isRefused, "\(size)")
        }
    }

    @Test func everyEventHasAnAnswerInEveryPhase() {
        let phases: [() -> ResumableUpload] = [
            { ResumableUpload(.nine, length: 100) }, { self.upload() }, { self.asking() }, { self.appending() },
            {
                var upload = self.upload()
                _ = upload.interrupted(now: Self.now)
                return upload
            },
            {
                var upload = self.upload()
                upload.end()
                return upload
            },
            {
                var upload = self.upload()
                _ = upload.cancelled()
                return upload
            },
        ]
        let lines: [Fields] = [
            [], [("Upload-Complete", "?1")], [("Upload-Complete", "?0"), ("Upload-Offset", "50")],
            [("Upload-Offset", "999999999999999"), ("Upload-Limit", "max-append-size=1")],
        ]
        for make in phases {
            for status in Array(200...208) + Array(300...308) + Array(400...431) + Array(500...511) + [599, 999] {
                for fields in lines {
                    var upload = make()
                    let wasEnded = upload.phase == .ended || upload.phase == .cancelling
                    let action = self.answer(&upload, status, fields)
                    if wasEnded { #expect(action == .deliver) }
                    _ = upload.informationalReceived(
                        status: 104, fields: self.fields(fields + self.announcement), now: Self.now)
                    _ = upload.interrupted(now: Self.now)
                    upload.pauseEnded()
                    upload.creationRepeated()
                    upload.resourceFound()
                    #expect(!wasEnded || !upload.isResumable)
                }
            }
        }
    }
}
