import ControlPlane
import Testing

@Suite("Entity tags, If-Match and If-None-Match, RFC 9110 §13.1")
struct EntityTagTests {
    private let tag = EntityTag(revision: 7)

    @Test func currentTagMatches() {
        #expect(EntityTag.passesIfMatch(self.tag.description, self.tag))
        #expect(EntityTag.passesIfMatch("\"x\",  \(self.tag) , \"y\"", self.tag))
        #expect(EntityTag.passesIfMatch("*", self.tag))
        #expect(EntityTag.passesIfMatch(nil, self.tag) && EntityTag.passesIfMatch(nil, nil))
    }

    @Test func ifNoneMatchWithTheCurrentTagMatches() {
        #expect(
            EntityTag.failsIfNoneMatch(self.tag.description, self.tag)
                && EntityTag.failsIfNoneMatch("W/\(self.tag)", self.tag))
        #expect(
            EntityTag.failsIfNoneMatch("\"x\", \(self.tag)", self.tag) && EntityTag.failsIfNoneMatch(" * ", self.tag))
        #expect(!EntityTag.failsIfNoneMatch(nil, self.tag) && !EntityTag.failsIfNoneMatch("", self.tag))
        #expect(!EntityTag.failsIfNoneMatch(EntityTag(revision: 8).description, self.tag))
        // No current representation exists.
        #expect(!EntityTag.failsIfNoneMatch("*", nil))
    }

    @Test func otherOrMissingTagDoesNotMatch() {
        #expect(!EntityTag.passesIfMatch(EntityTag(revision: 8).description, self.tag))
        #expect(!EntityTag.passesIfMatch("W/\(self.tag)", self.tag))
        #expect(!EntityTag.passesIfMatch("", self.tag))
        #expect(!EntityTag.passesIfMatch("*", nil) && !EntityTag.passesIfMatch(self.tag.description, nil))
    }
}
