import ControlPlane
import GatewayConfiguration
import GatewayCore
import Testing

@Suite("Requests that a web page makes")
struct OriginPolicyTests {
    private func status(
        _ authority: String?, origin: String? = nil, fetchSite: String? = nil,
        _ change: (inout ControlSettings) -> Void = { _ in }
    ) -> Int? {
        var settings = ControlSettings()
        settings.hosts = [.exact("control.example"), .wildcard(suffix: "inner.example")]
        change(&settings)
        do throws(ControlProblem) {
            try OriginPolicy(settings).check(authority: authority, origin: origin, fetchSite: fetchSite)
            return nil
        } catch {
            return error.status
        }
    }

    @Test(arguments: [
        "127.0.0.1:8081", "localhost", "LOCALHOST:1", "[::1]:8081", "192.0.2.7", "control.example:443",
        "a.inner.example",
    ])
    func requestUnderOurNameIsAnswered(_ authority: String) {
        #expect(self.status(authority) == nil)
    }

    @Test(arguments: [
        "evil.example:8081", "localhost.evil.example", "127.0.0.1.evil.example", "inner.example", "127.1", "0x7f000001",
        "control.example.", "127.0.0.1/8",
    ])
    func requestUnderAnotherNameIsRefused(_ authority: String) {
        #expect([400, 421].contains(self.status(authority)))
    }

    @Test(arguments: [nil, "", ":80", "[::1", "a@127.0.0.1"])
    func requestWithoutAHostIsRefused(_ authority: String?) {
        #expect([400, 421].contains(self.status(authority)))
    }

    @Test func requestFromAnotherOriginIsRefused() {
        let here = "127.0.0.1:8081"
        #expect(self.status(here, origin: "http://127.0.0.1:8081") == nil)
        #expect(self.status("control.example", origin: "https://control.example") == nil)
        #expect(self.status("control.example:443", origin: "https://control.example") == nil)
        let others = [
            "http://127.0.0.1:8080", "http://evil.example", "null", "", "file://", "http://127.0.0.1:8081.evil.example",
            "ftp://127.0.0.1:8081", "http://localhost:8081",
        ]
        for origin in others { #expect(self.status(here, origin: origin) == 403, "\(origin)") }
    }

    @Test func requestFromAnotherSiteWithoutAnOriginIsRefused() {
        let here = "127.0.0.1:8081"
        #expect(self.status(here, fetchSite: "none") == nil)
        #expect(self.status(here, fetchSite: "same-origin") == nil)
        for site in ["cross-site", "same-site", "x"] { #expect(self.status(here, fetchSite: site) == 403) }
    }

    /// Sorting the marks, as Unicode's normal forms need it, would take hours.
    @Test(.timeLimit(.minutes(1)), arguments: ["", "none", "localhost", "http://", "http://127.0.0.1:8081", "["])
    func fieldOfManyMarksIsRefusedInTimeThatGrowsWithIt(_ start: String) {
        let value = start + String(repeating: "\u{301}\u{323}", count: 500_000)
        #expect(self.status(value) == 400)
        #expect(self.status("127.0.0.1:8081", origin: value) == 403)
        #expect(self.status("127.0.0.1:8081", fetchSite: value) == 403)
    }

    @Test func originIsNotCheckedOnAUnixSocket() {
        let status = self.status("anything", origin: "http://evil.example") {
            $0.address = .unix(path: "/run/c.sock", mode: 0o600)
        }
        #expect(status == nil)
    }
}
