import CommandLineText
import Testing

@Suite("Usage errors in one line")
struct UsageLineTests {
    @Test func usageLineNamesTheErrorAndTheHelpCommand() {
        let whole = """
            Error: Unknown option '--bogus'
            Usage: sluice ls <options>
              See 'sluice ls --help' for more information.
            """
        #expect(
            UsageLine.text(message: "Unknown option '--bogus'", whole: whole)
                == "sluice: unknown option '--bogus'; see 'sluice ls --help'")
    }

    @Test func controlCharactersOfAnArgumentAreEscaped() {
        #expect(
            UsageLine.text(message: "Unexpected argument '\u{1B}[2J'", whole: "")
                == "sluice: unexpected argument '\\u{1B}[2J'; see 'sluice --help'")
    }

    @Test func severalLinesBecomeOne() {
        let message = "Cannot be done for 'csh'.\nUse one of:\n    zsh bash"
        #expect(
            UsageLine.text(message: message, whole: message)
                == "sluice: cannot be done for 'csh'. Use one of: zsh bash; see 'sluice --help'")
    }
}
