"""Skills: folders of instructions that an agent loads when it needs them.

::

    skill       one folder: its SKILL.md, read within bounds and checked
    catalogue   the folders that have skills, and what is wrong with some of them
    files       the files of a skill, and nothing outside its folder
    tools       the two tools by which the model loads instructions and files
    feature     the plugin: the catalogue in the prompt, and the tools
"""

from skills_feature.catalogue import Catalogue, find_skills
from skills_feature.feature import SkillsFeature
from skills_feature.files import SkillError
from skills_feature.skill import Skill, read_skill

__all__ = ["Catalogue", "Skill", "SkillError", "SkillsFeature", "find_skills", "read_skill"]
