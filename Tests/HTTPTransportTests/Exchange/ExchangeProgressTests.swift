import HTTPTransport
import Testing
import WireText

@Suite("One request and its response, RFC 9110 §10.1.1, §15.2, RFC 9112 §9.3")
struct ExchangeProgressTests {
    private func head(_ status: Int, _ fields: [(String, String)] = [], minor: Int = 1) -> ResponseHead {
        ResponseHead(
            version: HTTPVersion(1, minor), status: status, fields: FieldLines(fields.map { FieldLine($0.0, $0.1) }))
    }

    private func progress(
        _ fields: [(String, String)] = [], hasBody: Bool = false, expects: Bool = false
    ) -> ExchangeProgress {
        ExchangeProgress(
            RequestHead(method: "POST", target: "/", fields: FieldLines(fields.map { FieldLine($0.0, $0.1) })),
            hasBody: hasBody,
            expectsContinue: expects)
    }

    @Test func bodyIsSentAfter100Continue() {
        var progress = self.progress(hasBody: true, expects: true)
        #expect(progress.sending == .awaitingContinue)
        #expect(progress.informationalReceived(self.head(103), limit: 8) == .deliver(startsBody: false))
        #expect(progress.informationalReceived(self.head(100), limit: 8) == .deliver(startsBody: true))
        #expect(progress.sending == .body)
        #expect(progress.informationalReceived(self.head(100), limit: 8) == .deliver(startsBody: false))
        #expect(progress.continueTimedOut() == false)
    }

    @Test func bodyIsSentUnaskedWhenTheServerIsSilent() {
        var progress = self.progress(hasBody: true, expects: true)
        #expect(progress.continueTimedOut() == true)
        #expect(progress.sending == .body)
        #expect(progress.continueTimedOut() == false)
    }

    @Test func bodyIsNotSentToAServerThatAnsweredFirst() {
        var progress = self.progress(hasBody: true, expects: true)
        #expect(progress.headReceived(self.head(417, [("Content-Length", "0")])) == .deliver(.length(0)))
        #expect(progress.sending == .abandoned)
        #expect(progress.continueTimedOut() == false)
        // The server still waits for the announced body.
        #expect(progress.responseEnded() == false)
    }

    @Test func informationalHeadsAreCountedBetweenPiecesOfTheBody() {
        var progress = self.progress(hasBody: true)
        for _ in 0..<10 {
            for _ in 0..<2 {
                #expect(progress.informationalReceived(self.head(104), limit: 3) == .deliver(startsBody: false))
            }
            progress.bodyProgressed()
            // Some were received, so the request is not sent again by itself.
            #expect(progress.loss == .beforeHead)
        }
        for _ in 0..<2 { _ = progress.informationalReceived(self.head(104), limit: 3) }
        #expect(progress.informationalReceived(self.head(104), limit: 3) == .refuse(.tooManyInformationalHeads))
    }

    @Test func numberOfInformationalHeadsIsBounded() {
        var progress = self.progress()
        for _ in 0..<3 {
            #expect(progress.informationalReceived(self.head(102), limit: 3) == .deliver(startsBody: false))
        }
        #expect(progress.informationalReceived(self.head(102), limit: 3) == .refuse(.tooManyInformationalHeads))
    }

    @Test(
        arguments: [
            ([], 1, [("Content-Length", "1")], true), ([], 0, [("Content-Length", "1")], false),
            ([], 0, [("Content-Length", "1"), ("Connection", "Keep-Alive")], true),
            ([], 1, [("Content-Length", "1"), ("Connection", "foo, CLOSE")], false), ([], 1, [], false),
            ([("Connection", "close")], 1, [("Content-Length", "1")], false),
        ] as [([(String, String)], Int, [(String, String)], Bool)])
    func connectionPersistsAsBothSidesAllow(
        _ request: [(String, String)], _ minor: Int, _ response: [(String, String)], _ keeps: Bool
    ) {
        var progress = self.progress(request)
        _ = progress.headReceived(self.head(200, response, minor: minor))
        progress.contentReceived(1)
        #expect(progress.responseEnded() == keeps)
    }

    @Test func connectionOfAnUnfinishedRequestIsNotReused() {
        var progress = self.progress(hasBody: true)
        _ = progress.headReceived(self.head(200, [("Content-Length", "0")]))
        #expect(progress.responseEnded() == false)
        #expect(progress.sending == .abandoned)
        progress = self.progress(hasBody: true)
        progress.bodyEnded()
        _ = progress.headReceived(self.head(200, [("Content-Length", "0")]))
        #expect(progress.responseEnded() == true)
    }

    @Test func onlyOfferedUpgradesAreAccepted() {
        let fields = [("Connection", "keep-alive, Upgrade"), ("Upgrade", "foo")]
        var progress = self.progress([("Upgrade", "foo"), ("Connection", "Upgrade")])
        #expect(progress.headReceived(self.head(101, fields)) == .upgrade)
        #expect(progress.isUpgraded)
        progress = self.progress()
        #expect(progress.headReceived(self.head(101, fields)) == .refuse(.upgrade))
        progress = self.progress([("Upgrade", "foo")])
        #expect(progress.headReceived(self.head(101, [("Upgrade", "foo")])) == .refuse(.upgrade))
        progress = self.progress([("Upgrade", "foo")], hasBody: true)
        #expect(progress.headReceived(self.head(101, fields)) == .refuse(.upgrade))
    }

    @Test func lostConnectionReportsItsExchange() {
        var progress = self.progress()
        #expect(progress.loss == .beforeResponse)
        _ = progress.informationalReceived(self.head(103), limit: 8)
        #expect(progress.loss == .beforeHead)
        _ = progress.headReceived(self.head(200, [("Content-Length", "10")]))
        progress.contentReceived(4)
        #expect(progress.loss == .withinContent(received: 4, expected: 10))
        _ = progress.responseEnded()
        #expect(progress.loss == .none)
        progress = self.progress()
        _ = progress.headReceived(self.head(200, [("Transfer-Encoding", "chunked")]))
        #expect(progress.loss == .withinContent(received: 0, expected: nil))
    }

    @Test func secondHeadIsRefused() {
        var progress = self.progress()
        _ = progress.headReceived(self.head(200))
        #expect(progress.headReceived(self.head(200)) == .refuse(.unsolicited))
        #expect(progress.informationalReceived(self.head(100), limit: 8) == .refuse(.unsolicited))
    }
}
